"""Sampled tokens are offered to the resources that make them a prefix for the next turn."""

from collections.abc import Callable, Mapping

import pytest

from tests.engine.resources.stubs import PrefixBatchStub, PrefixStub, Stub
from treadle.engine.resources.runner import StepRunner
from treadle.errors import EngineError, UnknownNameError


def built(closed: str = "") -> tuple[StepRunner, list[str]]:
    """One resource that takes tokens by request, one that takes a step's rows."""
    calls: list[str] = []
    stubs = {
        "kv": PrefixBatchStub("kv", calls),
        "state": PrefixStub("state", calls),
        "attn": Stub("attn", []),
    }
    for key in ("kv", "state"):
        if key == closed:
            stubs[key].prefix_cache_open = False  # type: ignore[attr-defined]
    return StepRunner(stubs, {"node": tuple(stubs), "bare": ["attn"]}), calls


def test_the_keys_are_those_whose_cache_is_open_now() -> None:
    """Empty in the common case, so that a step of many requests makes no call for each of them."""
    assert built()[0].prefix_chain_keys("node") == ["kv", "state"]
    assert built(closed="kv")[0].prefix_chain_keys("node") == ["state"]
    assert built()[0].prefix_chain_keys("bare") == []
    assert built()[0].prefix_chain_keys(None) == ["kv", "state"]
    with pytest.raises(UnknownNameError, match="stranger"):
        built()[0].prefix_chain_keys("stranger")


def test_a_request_s_tokens_go_to_every_open_chain() -> None:
    """Without keys it is asked who is open."""
    runner, calls = built(closed="kv")
    runner.extend_prefix_chains("r", "node", "decode", [5])
    assert calls == ["extend state r node decode [5]"]


def test_a_request_s_tokens_go_to_the_keys_that_were_given() -> None:
    """Asked once for a step, not once for each request."""
    runner, calls = built()
    runner.extend_prefix_chains("r", "node", "decode", [5], keys=["state"])
    runner.extend_prefix_chains("r", "node", "decode", [5], keys=[])
    assert calls == ["extend state r node decode [5]"]
    with pytest.raises(UnknownNameError, match=r"attn.*kv, state"):
        runner.extend_prefix_chains("r", "node", "decode", [5], keys=["attn"])


WALKS: dict[str, str | Mapping[str, str] | Callable[[str], str]] = {
    "one for all": "decode",
    "a mapping": {"r1": "decode", "r2": "decode"},
    "a function": lambda rid: "decode",
}


@pytest.mark.parametrize("walk_of", WALKS.values(), ids=WALKS)
def test_the_batch_form_is_called_once_and_the_other_for_each_request_with_tokens(
    walk_of: str | Mapping[str, str] | Callable[[str], str],
) -> None:
    """The rows are there already; the copies of single requests are made only for those who need them."""
    runner, calls = built()
    runner.extend_prefix_chains_batch(["r1", "r2"], "node", walk_of, [[5], [6]], {"r2": [6]}, ["kv", "state"])
    assert calls == [
        "extend batch kv node: r1 decode [5], r2 decode [6]",
        "extend state r2 node decode [6]",
    ]


def test_each_request_is_extended_in_its_own_walk() -> None:
    """A combined step would else fall back to a call for each row."""
    runner, calls = built()
    walks = {"r1": "prefill", "r2": "decode"}
    runner.extend_prefix_chains_batch(
        ["r1", "r2"], "node", walks, [[5], [6]], {"r1": [5], "r2": [6]}, ["kv", "state"]
    )
    assert calls == [
        "extend batch kv node: r1 prefill [5], r2 decode [6]",
        "extend state r1 node prefill [5]",
        "extend state r2 node decode [6]",
    ]


def test_rows_and_requests_must_match() -> None:
    """One row too few would give each request its neighbour's token."""
    runner, calls = built()
    with pytest.raises(EngineError, match="each of 2 requests, got 1"):
        runner.extend_prefix_chains_batch(["r1", "r2"], "node", "decode", [[5]], {}, ["kv"])
    assert calls == []
