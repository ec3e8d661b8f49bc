"""What other nodes are told of requests, and what they bring in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from treadle.engine.resources import Refusal, Segment
from treadle.engine.resources.protocols import PublishingSnapshotBatches, Retrieving
from treadle.engine.resources.step import PublishedInfo
from treadle.errors import EngineError
from treadle.testing.resources.bench import NODE, WALK, Bench, expect
from treadle.testing.resources.gates import unless_told
from treadle.testing.resources.stages import Stages

STRANGER = "stranger"
_TURNS = 100


class Publishes(Stages):
    """What publishes and retrieves."""

    @precondition(lambda self: self.stored.with_tokens())
    @rule(data=st.data(), stopped=st.booleans())
    def publish(self, data: st.DataObject, stopped: bool) -> None:
        """What is told later is what would have been told now, whatever happens in between.

        When a loop has stopped nothing goes on, so then it is told the same again.
        """
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.stored)), min_size=1, unique=True))
        rids, before, runner = [*chosen, STRANGER], self.main.holdings(), self.main.runner
        told = {rid: infos for rid, infos in runner.publish(rids, NODE, WALK).items() if infos}
        snapshots = runner.publish_snapshot(rids, NODE, WALK)
        self.told.append((snapshots, told))
        self._batches_are_alike(rids)
        known = STRANGER in told or STRANGER in snapshots
        if stopped:
            once, again = (runner.publish_after_stop(rids, NODE, WALK) for _ in range(2))
            expect(once == again, f"asked twice after a stop, told is {once}, then {again}")
            known = known or bool(once[STRANGER])
        expect(not known, "something is published of a request that nobody knows")
        self.unchanged(before, "publishing")

    @precondition(lambda self: self.main.having(Retrieving) and self._publishable())
    @rule(data=st.data(), how=st.sampled_from(["comes", "is slow", "fails", "is refused", "goes"]))
    def retrieve(self, data: st.DataObject, how: str) -> None:
        """Another node brings in what is published of a request, and goes on from it."""
        rid = data.draw(st.sampled_from(self._publishable()))
        published = self.main.runner.publish([rid], NODE, WALK)[rid]
        other = Bench(self.subject)
        other.runner.ingest_request(rid, self.overrides[rid])
        empty = other.holdings()
        other.gate.refuses, other.gate.pending = how == "is refused", 2 * (how == "is slow")
        other.gate.fails = "admit_retrieve" if how == "fails" else ""
        first = unless_told(other.gate, lambda: other.runner.admit_retrieve(rid, NODE, WALK, published))
        if first is not None and first.reason is Refusal.RUNTIME_ERROR:
            expect(other.holdings() == empty, f"retrieving {rid!r} was refused for good, and took something")
            return
        if how == "goes":
            other.runner.remove_request(rid)
            other.check([])
            return
        self._wait(other, rid, published)
        self._is_there(other, rid, published)
        self._goes_on(other, rid)

    @precondition(lambda self: self.main.having(Retrieving) and self._publishable())
    @rule(data=st.data(), tokens=st.integers(1, 16))
    def retrieve_into_little_room(self, data: st.DataObject, tokens: int) -> None:
        """Others have the room: nothing is taken, and when they are gone it comes."""
        rid = data.draw(st.sampled_from(self._publishable()))
        published = self.main.runner.publish([rid], NODE, WALK)[rid]
        other = Bench(self.subject)
        other.runner.ingest_request(rid, self.overrides[rid])
        crowd = _crowded(other, self.overrides[rid], tokens)
        before = other.holdings()
        outcome = other.runner.admit_retrieve(rid, NODE, WALK, published)
        if outcome.ok:
            return
        expect(other.holdings() == before, f"retrieving {rid!r} gave {outcome}, and took something")
        for each in reversed(crowd):
            other.runner.remove_request(each)
        if outcome.reason is not Refusal.RUNTIME_ERROR:
            self._wait(other, rid, published)
            self._is_there(other, rid, published)

    def _publishable(self) -> list[str]:
        return [rid for rid in self.stored.with_tokens() if rid not in self.away]

    def _batches_are_alike(self, rids: Sequence[str]) -> None:
        """Snapshots taken in one call say what those say that are taken one by one."""
        for key, each in self.main.having(PublishingSnapshotBatches).items():  # type: ignore[type-abstract]
            single = {rid: each.publish_snapshot(rid, NODE, WALK) for rid in rids}
            batch = each.publish_snapshot_batch(rids, NODE, lambda _: WALK)
            taken = {rid: snapshot for rid, snapshot in single.items() if snapshot is not None}
            expect(
                set(taken) == set(batch),
                f"resource {key!r} takes snapshots of {sorted(taken)} one by one, of {sorted(batch)} at once",
            )
            for rid, snapshot in taken.items():
                one, all_ = (
                    each.publish_from_snapshot(rid, noted, NODE, WALK) for noted in (snapshot, batch[rid])
                )
                expect(
                    one == all_, f"resource {key!r} tells {one} of {rid!r}; from a snapshot of many, {all_}"
                )

    def _wait(self, other: Bench, rid: str, published: Mapping[str, PublishedInfo]) -> None:
        for _ in range(_TURNS):
            outcome = other.runner.admit_retrieve(rid, NODE, WALK, published)
            expect(outcome.ok, f"retrieving {rid!r} where there is room gave {outcome}")
            if outcome.ready:
                return
        expect(False, f"retrieving {rid!r} is not ready after it was asked {_TURNS} times")

    def _is_there(self, other: Bench, rid: str, published: Mapping[str, PublishedInfo]) -> None:
        """What is brought in is what is there, and it is brought in once."""
        held = other.holdings()
        again = other.runner.admit_retrieve(rid, NODE, WALK, published)
        expect(again.ready, f"{rid!r} was retrieved and ready, and asked again it gave {again}")
        expect(other.holdings() == held, f"{rid!r} was retrieved; asked again, more was taken")
        other.check([rid])
        retrieving = other.having(Retrieving)  # type: ignore[type-abstract]
        here, there = (
            {key: seen for key, seen in bench.seen(rid).items() if key in retrieving}
            for bench in (other, self.main)
        )
        expect(here == there, f"of {rid!r} was retrieved {here}; stored and published was {there}")

    def _goes_on(self, other: Bench, rid: str) -> None:
        """Here as there: the next step is planned behind what was brought in, and all of it goes."""
        if self.stored.room_of(rid):
            other.run(other.step((Segment(rid, 1),)))
            other.check([rid])
        other.runner.remove_request(rid)
        other.check([])


def _crowded(bench: Bench, overrides: Mapping[str, object], tokens: int) -> list[str]:
    """Requests that have so many tokens in all, as far as there is room."""
    rids = [f"crowd {at}" for at in range(4)]
    with suppress(EngineError):
        for rid in rids:
            bench.runner.ingest_request(rid, overrides)
        for at in range(tokens):
            bench.run(bench.step((Segment(rids[at % len(rids)], 1),)))
    return rids
