"""The pages of a cached prefix, held for a request by every rank alike."""

from collections.abc import Mapping, Sequence

import pytest

from tests.engine.resources.stubs import LeasingStub, Stub
from treadle.engine.resources.runner import StepRunner
from treadle.errors import EngineError, UnknownNameError

LEASES = {"kv": [4, 5], "state": [1]}


def built(
    raises: Mapping[str, Exception] | None = None, behind: Sequence[str] = ()
) -> tuple[StepRunner, list[str]]:
    calls: list[str] = []
    stubs: dict[str, Stub] = {"attn": Stub("attn", calls)}
    for key, pages in {"kv": (4, 5), "state": (1,), "empty": ()}.items():
        stubs[key] = stub = LeasingStub(key, calls, raises=raises if key == "state" else None)
        stub.pages, stub.here = pages, key not in behind
    return StepRunner(stubs, {"node": tuple(stubs), "other": ["kv"]}), calls


def test_a_lease_names_the_pages_of_each_resource_that_holds_any() -> None:
    """It is sent to the other ranks, who hold the same."""
    runner, calls = built()
    assert runner.lease_cached_prefix("r", "node", "prefill") == LEASES
    assert calls == ["lease empty r node prefill", "lease kv r node prefill", "lease state r node prefill"]


def test_all_lease_or_none() -> None:
    """Half a lease is a prefix that no step can begin behind, and pages that nobody gives back."""
    runner, calls = built(raises={"lease": EngineError("broken")})
    with pytest.raises(EngineError, match="broken"):
        runner.lease_cached_prefix("r", "node", "prefill")
    assert calls[3:] == ["release state r", "release kv r", "release empty r"]


def test_a_follower_adopts_what_the_leader_leased() -> None:
    """The very pages, so that the ranks' tables stay the same."""
    runner, calls = built()
    assert runner.adopt_cached_prefix("r", "node", "prefill", LEASES, caught_up=True)
    assert calls == ["adopt kv r [4, 5] True", "adopt state r [1] True"]


def test_a_follower_that_is_behind_adopts_nothing() -> None:
    """It asks again when it has caught up; until then it holds nothing."""
    runner, calls = built(behind=["state"])
    assert not runner.adopt_cached_prefix("r", "node", "prefill", LEASES, caught_up=False)
    assert calls[1:] == ["adopt state r [1] False", "release state r", "release kv r"]


def test_an_adoption_that_fails_adopts_nothing() -> None:
    """Ranks that allocated differently are found here; they must not hold pages besides."""
    runner, calls = built(raises={"adopt": EngineError("ranks differ")})
    with pytest.raises(EngineError, match="ranks differ"):
        runner.adopt_cached_prefix("r", "node", "prefill", LEASES, caught_up=True)
    assert calls[2:] == ["release state r", "release kv r"]


def test_pages_of_a_resource_that_leases_none_are_an_error() -> None:
    """The ranks were built from different deployments."""
    runner, calls = built()
    with pytest.raises(UnknownNameError, match=r"'attn'.*empty, kv, state"):
        runner.adopt_cached_prefix("r", "node", "prefill", {"attn": [1]}, caught_up=True)
    assert calls == []


def test_release_tries_every_resource() -> None:
    """One that fails to let go must not make the others leak."""
    runner, calls = built(raises={"release": EngineError("stuck")})
    with pytest.raises(EngineError, match="stuck"):
        runner.release_cached_prefix("r", "node", "prefill")
    assert calls == ["release state r", "release kv r", "release empty r"]


def test_trails_are_those_of_the_node() -> None:
    """Lock-step ranks compare them before they trust each other's page ids."""
    runner, _ = built()
    assert runner.page_trails("other") == {"kv": (2, 9)}
    assert runner.page_trails("node") == {"empty": (0, 0), "kv": (2, 9), "state": (1, 1)}


def test_leases_are_scoped_to_the_node() -> None:
    """Another node's cache has pages of the same numbers."""
    runner, _ = built()
    assert runner.lease_cached_prefix("r", "other", "prefill") == {"kv": [4, 5]}
    for verb in (runner.lease_cached_prefix, runner.release_cached_prefix):
        with pytest.raises(UnknownNameError, match="stranger"):
            verb("r", "stranger", "prefill")
    with pytest.raises(UnknownNameError, match="stranger"):
        runner.page_trails("stranger")
