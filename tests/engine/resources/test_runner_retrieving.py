"""What another node published is brought in before a request may run here."""

import pytest

from tests.engine.resources.stubs import PENDING, Info, RetrievingStub, Stub
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import (
    READY,
    AdmitOutcome,
    FullAdmitOutcome,
    Refusal,
)
from treadle.errors import UnknownNameError

LOST = AdmitOutcome(ok=False, ready=False, reason=Refusal.RUNTIME_ERROR)


def test_each_retriever_sees_what_was_published_for_it() -> None:
    """And nothing where nothing was: it decides whether it needs any."""
    calls: list[str] = []
    stubs = {
        "kv": RetrievingStub("kv", calls),
        "rope": RetrievingStub("rope", calls),
        "attn": Stub("attn", []),
    }
    runner = StepRunner(stubs)
    told = {"kv": Info("pages"), "of another node": Info("other")}
    assert runner.admit_retrieve("r", "node", "decode", told) == FullAdmitOutcome(ok=True, ready=True)
    assert calls == ["retrieve kv r node decode pages", "retrieve rope r node decode nothing"]


def test_nothing_published_is_nothing_to_bring_in() -> None:
    """The first node of a request asks, too."""
    calls: list[str] = []
    assert StepRunner({"kv": RetrievingStub("kv", calls)}).admit_retrieve("r", "node", "decode").ready
    assert calls == ["retrieve kv r node decode nothing"]


@pytest.mark.parametrize("answers", [(PENDING, READY), (READY, PENDING)])
def test_it_is_not_ready_while_anything_flies(answers: tuple[AdmitOutcome, AdmitOutcome]) -> None:
    """A step that reads pages which have not landed computes from somebody else's."""
    calls: list[str] = []
    stubs = {
        key: RetrievingStub(key, calls, answer=answer) for key, answer in zip("ab", answers, strict=True)
    }
    outcome = StepRunner(stubs).admit_retrieve("r", "node", "decode")
    assert outcome == FullAdmitOutcome(ok=True, ready=False)
    assert len(calls) == 2


def test_the_first_failure_ends_it_and_is_named() -> None:
    """What the rest would bring in is of no use, and who failed is what one wants to know."""
    calls: list[str] = []
    stubs = {
        "a": RetrievingStub("a", calls, answer=PENDING),
        "b": RetrievingStub("b", calls, answer=LOST),
        "c": RetrievingStub("c", calls),
    }
    outcome = StepRunner(stubs).admit_retrieve("r", "node", "decode")
    assert outcome == FullAdmitOutcome(ok=False, ready=False, reason=Refusal.RUNTIME_ERROR, key="b")
    assert [call.split()[1] for call in calls] == ["a", "b"]


def test_only_the_node_s_own_resources_are_asked() -> None:
    """Another node's cache would answer for a request that it does not know, and take pages for it."""
    calls: list[str] = []
    stubs = {"kv": RetrievingStub("kv", calls), "other": RetrievingStub("other", calls, answer=LOST)}
    runner = StepRunner(stubs, {"one": ["kv"], "two": ["other"], "three": []})
    assert runner.admit_retrieve("r", "one", "decode").ready
    assert runner.admit_retrieve("r", "three", "decode").ready
    assert calls == ["retrieve kv r one decode nothing"]
    with pytest.raises(UnknownNameError, match="stranger"):
        runner.admit_retrieve("r", "stranger", "decode")
