"""What other nodes are told: now, later, or when a loop has stopped."""

import pytest

from tests.engine.resources.stubs import (
    Info,
    PublishingStub,
    SnapshotBatchStub,
    SnapshotStub,
    StopStub,
    Stub,
)
from treadle.engine.resources.runner import StepRunner
from treadle.errors import EngineError, UnknownNameError

FORMS = [PublishingStub, SnapshotStub, SnapshotBatchStub]


def built(kind: type[PublishingStub] = PublishingStub) -> tuple[StepRunner, list[str]]:
    calls: list[str] = []
    silent = kind("sampler", calls)
    silent.silent = ("r1", "r2")
    return StepRunner({"kv": kind("kv", calls), "sampler": silent, "attn": Stub("attn", calls)}), calls


def test_only_publishers_are_asked_and_only_what_is_told_is_filed() -> None:
    """Asked for each request in each step, those that never publish would cost more than those that do."""
    runner, calls = built()
    assert runner.publish(["r1"], "node", "decode") == {"r1": {"kv": Info("kv: r1 at node in decode")}}
    assert calls == ["publish kv r1", "publish sampler r1"]


def test_resources_describe_themselves_without_any_step() -> None:
    """A request that only stored something is worth knowing of, too."""
    runner, _ = built()
    assert runner.publish(["r1", "r3"]) == {
        "r1": {"kv": Info("kv: r1 at None in None")},
        "r3": {"kv": Info("kv: r3 at None in None"), "sampler": Info("sampler: r3 at None in None")},
    }


def test_without_publishers_every_request_is_answered_for() -> None:
    """Who merges what was published need not ask whether there was anything."""
    assert StepRunner({"attn": Stub("attn", [])}).publish(["r1", "r2"]) == {"r1": {}, "r2": {}}


def test_each_request_is_published_under_its_own_walk() -> None:
    """A step may combine walks, and a publisher may key what it tells by the walk."""
    runner, _ = built()
    told = runner.publish(["r1", "r2"], "node", "decode", {"r2": "prefill"})
    assert told["r1"]["kv"] == Info("kv: r1 at node in decode")
    assert told["r2"]["kv"] == Info("kv: r2 at node in prefill")


@pytest.mark.parametrize("kind", FORMS)
def test_snapshots_of_every_form_finish_to_what_publish_says(kind: type[PublishingStub]) -> None:
    """Whether the work is put off must not be seen in what is told."""
    runner, _ = built(kind)
    walks = {"r2": "prefill"}
    eager = runner.publish(["r1", "r2"], "node", "decode", walks)
    snapshots = runner.publish_snapshot(["r1", "r2"], "node", "decode", walks)
    assert {rid: set(noted) for rid, noted in snapshots.items()} == {"r1": {"kv"}, "r2": {"kv"}}
    finished = runner.publish_from_snapshots(snapshots, ["r1", "r2"], "node", "decode", walks)
    assert finished == eager


@pytest.mark.parametrize("kind", FORMS)
def test_only_the_requests_asked_for_are_finished(kind: type[PublishingStub]) -> None:
    """The rest was put off so that it need not be done."""
    runner, _ = built(kind)
    snapshots = runner.publish_snapshot(["r1", "r2"])
    assert runner.publish_from_snapshots(snapshots, ["r2"]) == {"r2": runner.publish(["r2"])["r2"]}
    assert runner.publish_from_snapshots(snapshots, ["r9"]) == {}


@pytest.mark.parametrize("kind", FORMS)
def test_a_request_of_which_nothing_is_told_has_no_snapshot(kind: type[PublishingStub]) -> None:
    """An empty entry would be carried through every step for nothing."""
    calls: list[str] = []
    silent = kind("kv", calls)
    silent.silent = ("r1",)
    assert set(StepRunner({"kv": silent}).publish_snapshot(["r1", "r2"])) == {"r2"}


def test_the_batch_form_is_called_once() -> None:
    """For a step of many rows a call per row is what it saves."""
    runner, calls = built(SnapshotBatchStub)
    runner.publish_snapshot(["r1", "r2"])
    assert calls == ["snapshots kv r1 r2", "snapshots sampler r1 r2"]


def test_the_snapshot_of_a_plain_publisher_is_what_it_said() -> None:
    """Anything else handed in would be told to other nodes as if it had been published."""
    runner, _ = built()
    assert runner.publish_snapshot(["r1"]) == {"r1": {"kv": Info("kv: r1 at None in None")}}
    with pytest.raises(EngineError, match="'r1' for resource 'kv' should be what it published, got a int"):
        runner.publish_from_snapshots({"r1": {"kv": 3}}, ["r1"])


def test_publishing_is_scoped_to_the_node() -> None:
    """No other node's state moved in the step; what it published before stands."""
    calls: list[str] = []
    stubs = {"kv": PublishingStub("kv", calls), "other": SnapshotStub("other", calls)}
    runner = StepRunner(stubs, {"one": ["kv"], "two": ["other"]})
    assert set(runner.publish(["r"], "one")["r"]) == {"kv"}
    assert set(runner.publish_snapshot(["r"], "two")["r"]) == {"other"}
    both = runner.publish_snapshot(["r"])
    assert set(both["r"]) == {"kv", "other"}
    assert set(runner.publish_from_snapshots(both, ["r"], "two")["r"]) == {"other"}
    for verb in (runner.publish, runner.publish_snapshot, runner.publish_after_stop):
        with pytest.raises(UnknownNameError, match=r"stranger.*one.*two"):
            verb(["r"], "stranger")


def test_only_those_speak_after_the_stop_that_are_made_for_it() -> None:
    """A loop's passing states are nobody's business; what it ends with is."""
    calls: list[str] = []
    runner = StepRunner({"kv": StopStub("kv", calls), "attn": PublishingStub("attn", calls)})
    told = runner.publish_after_stop(["r1", "r2"], None, "decode", {"r2": "loop"})
    assert told == {"r1": {"kv": Info("kv: r1 stopped")}, "r2": {"kv": Info("kv: r2 stopped")}}
    assert calls == ["stop kv r1 decode", "stop kv r2 loop"]
