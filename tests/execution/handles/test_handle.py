"""A handle is frozen; its identity is there at once, and depth and width are no limits."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from treadle.errors import ArgumentError, FingerprintMismatchError, IdentityError
from treadle.execution import Handle, Retry, StepContext, lower, step
from treadle.execution.handles.remote import remote
from treadle.fray import ResourceConfig


@step
def words(text: str) -> list[str]:
    return text.split()


@step
def count(lines: Any, minimum: int = 1) -> int:
    return len(lines) + minimum


def plain(text: str) -> str:
    return text


@dataclass(frozen=True)
class Pair:
    a: Any
    b: Any = None


class Model(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    inner: Any


SCRIPT = """
from treadle.execution import step

@step
def read(names):
    return names

@step
def count(lines, options=None):
    return 0

base = [read({"a", "b", ("c", 1)}), read({"x": 1, "y": 2}), read([])]
swapped = {read([]): 0, read({"y": 2, "x": 1}): 0, read({("c", 1), "b", "a"}): 0}
shared = [1]
print(count(set(base), {"k": [shared, shared]}).id == count(set(swapped), {"k": [[1], [1]]}).id)
print(count(set(base), {"k": [shared, shared]}).hash_id)
"""


def test_the_identity_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Whatever the hash seed, the store, the order of insertion, and whether it is run or imported."""
    (tmp_path / "recipe.py").write_text(SCRIPT)
    seen = {
        subprocess.run(
            [sys.executable, *how], capture_output=True, text=True, check=True, cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "TREADLE_PREFIX": f"/s{seed}"},
        ).stdout
        for seed, how in [("0", ["recipe.py"]), ("1", ["-c", "import recipe"])]
    }  # fmt: skip
    assert len(seen) == 1
    assert seen.pop().startswith("True\n")


def test_options_are_circumstances_and_no_identity() -> None:
    base = words("a")
    changed = base.with_options(retry=Retry(2), timeout=5).with_options(resources=ResourceConfig(cpu=2))
    spec = lower(changed, "/s")
    assert (spec.retry, spec.timeout, spec.resources) == (Retry(2), 5, ResourceConfig(cpu=2))
    assert (spec.id, changed.id) == (base.id, base.id)
    assert lower(base, "/s").timeout is None
    with pytest.raises(ArgumentError, match="step 'words': timeout: expected seconds, more than 0"):
        base.with_options(timeout=-1)


def test_a_step_can_have_options_for_all_its_handles() -> None:
    made = step(name="n", version="2026.02.03", retry=Retry(2), timeout=3)(plain)("a")
    spec = lower(made, "/s")
    assert (spec.id, spec.retry, spec.timeout) == ("n@2026.02.03", Retry(2), 3)
    wanted = ResourceConfig(cpu=5)
    assert lower(step(remote(plain, resources=wanted))("a"), "/s").resources == wanted
    with pytest.raises(ArgumentError, match="step 'plain': timeout"):
        step(timeout=0)(plain)


def test_a_recipe_can_be_pinned() -> None:
    pinned = step(expected_fingerprint=words("a").hash_id[:16], name="words")(words.function)
    assert lower(pinned("a"), "/s").hash_id == words("a").hash_id
    with pytest.raises(FingerprintMismatchError, match="step words-"):
        lower(pinned("b"), "/s")
    with pytest.raises(FingerprintMismatchError):
        lower(words("b").expecting(words("a").hash_id), "/s")


def test_what_is_lowered_is_what_a_spec_of_the_same_recipe_would_be() -> None:
    handle = count([words("a"), {"k": (words("b"), 1)}])
    spec = lower(handle, "/s")
    assert spec.hash_id == handle.hash_id
    assert spec.config == {"dict": [[key, spec.hash_attrs[key]] for key in sorted(spec.hash_attrs)]}
    assert [dep.id for dep in spec.deps] == [words("a").id, words("b").id]


def test_handles_in_sets_are_in_the_order_of_what_they_are() -> None:
    """A set goes by the addresses of its items, another order each time."""
    seen = {count({words(each) for each in order}).id for order in ("abcdef", "fedcba", "cafebd")}
    assert len(seen) == 1


@pytest.mark.parametrize("make", [lambda h: {h: 1}, lambda h: Model(inner=h), lambda h: [{(h,): 1}]])
def test_a_handle_where_no_value_can_be_put_is_refused(make: Any) -> None:
    with pytest.raises(IdentityError, match="step 'count': a step stands where its value cannot be put"):
        count(make(words("a")))


def test_a_handle_deep_inside_a_captured_variable_is_refused() -> None:
    captured = [{"k": words("a")}]

    @step
    def use() -> Any:
        return captured

    with pytest.raises(
        ArgumentError, match=r"captured variable captured: expected a value, got Handle\(words-"
    ):
        use()


def test_what_looks_like_a_step_in_an_argument_is_none() -> None:
    pretender = {"@step": words("a").identity}
    assert count(pretender).id != count(words("a")).id
    assert count('{"@step":"x"}').deps == ()
    assert count(Pair({"@step": 1}, words("a"))).deps != ()


def test_a_copy_is_the_handle_and_a_sent_one_keeps_its_identity_only() -> None:
    chain: Handle[Any] = words("a")
    for _ in range(5000):
        chain = count(chain)
    assert copy.copy(chain) is copy.deepcopy(chain) is chain
    sent = pickle.loads(pickle.dumps(chain))
    assert (sent.id, sent.identity, repr(sent)) == (chain.id, chain.identity, repr(chain))
    with pytest.raises(ArgumentError, match="it came from another process"):
        lower(sent, "/s")


def test_a_lowered_call_is_sent_without_the_graph_above_it() -> None:
    chain: Handle[Any] = words("a")
    for _ in range(5000):
        chain = count([chain, Pair(chain)])
    sent = pickle.dumps(lower(chain, "/s").fn)
    assert len(sent) < 1000
    again = pickle.loads(sent)
    assert again.deps == (("/s", lower(chain, "/s").deps[0].output_path, None),)
    assert again.__wrapped__ is count.function


def test_a_very_deep_chain_and_a_ladder_of_diamonds_are_ordinary() -> None:
    """Whatever goes from step to step of its own ends at depth, dropping the chain too."""
    chain: Handle[Any] = words("a")
    for _ in range(100_000):
        chain = count(chain)
    spec = lower(chain, "/s")
    assert len({spec, lower(chain, "/s")}) == 1
    assert len(repr(spec)) + len(repr(chain)) < 500
    ladder: Handle[Any] = words("a")
    for _ in range(25):
        ladder = count([ladder, ladder])
    assert lower(ladder, "/s").dep_ids == (ladder.deps[0].id,)
    del chain, spec


def test_arguments_that_cannot_change_are_not_copied() -> None:
    frozen = Pair((1, 2), Pair("x"))
    assert count(frozen).recipe.arguments["lines"] is frozen  # type: ignore[attr-defined]


def test_a_context_names_what_it_has() -> None:
    ctx = StepContext("/p", "n", "f", "/s", {"threads": 2})
    assert ctx.runtime_arg("threads") == 2
    with pytest.raises(
        KeyError, match="unknown runtime argument of step 'n' 'thread'; did you mean 'threads'"
    ):
        ctx.runtime_arg("thread")
    with pytest.raises(ArgumentError, match="expected one of its deps"):
        ctx.artifact_path(words("a"))
