"""What some resources can do beyond the cycle: publish, hold prefixes, move away and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from treadle.engine.resources import Refusal, Segment
from treadle.engine.resources.protocols import CachingPrefixes, LeasingPrefixes, Offloading
from treadle.engine.resources.step import CachedPrefix
from treadle.errors import EngineError
from treadle.testing.resources.bench import NODE, WALK, Bench, expect
from treadle.testing.resources.stages import Stages


class ResourceMachine(Stages):
    """All events."""

    @precondition(lambda self: self.stored)
    @rule()
    def publish(self) -> None:
        """What is told later is what would have been told now, whatever happens in between."""
        rids, before, runner = sorted(self.stored), self.main.holdings(), self.main.runner
        told = {rid: infos for rid, infos in runner.publish(rids, NODE, WALK).items() if infos}
        self.told.append((runner.publish_snapshot(rids, NODE, WALK), told))
        self.unchanged(before, "publishing")

    @precondition(lambda self: any(not tokens for tokens in self.stored.values()))
    @rule(data=st.data(), prompt=st.sampled_from([(1,), (2,), (1, 2)]), begins=st.booleans())
    def begin_behind_a_prefix(self, data: st.DataObject, prompt: tuple[int, ...], begins: bool) -> None:
        """A prefix is asked for and leased, each twice; it is given back, or the request begins behind it."""
        if not any(isinstance(each, CachingPrefixes | LeasingPrefixes) for each in self._resources()):
            return
        rid = data.draw(st.sampled_from([rid for rid, tokens in self.stored.items() if not tokens]))
        inputs = (prompt * self.subject.limit)[: self.subject.limit]
        prefix = self._resolve_and_lease(rid, inputs)
        if self.twin is not None:
            expected = self.twin.runner.resolve_cached_prefix(rid, NODE, WALK, inputs)
            expect(prefix == expected, f"served is {prefix}; where nothing was undone before, {expected}")
        if begins and prefix is not None and prefix.length < self.subject.limit:
            self.main.runner.apply_cached_prefix(rid, NODE, WALK, inputs, prefix)
            self.likewise(lambda twin: twin.runner.apply_cached_prefix(rid, NODE, WALK, inputs, prefix))
            self.stored[rid] = prefix.length
        else:
            self.main.runner.release_cached_prefix(rid, NODE, WALK)
            self.likewise(lambda twin: twin.runner.release_cached_prefix(rid, NODE, WALK))

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), back=st.booleans())
    def offload(self, data: st.DataObject, back: bool) -> None:
        """A request's state goes away: as much comes free as is said, and no step may name it."""
        rid = data.draw(st.sampled_from(sorted(self.stored)))
        for key in self._offloading():
            if _offloading(self.main, key).can_offload(rid):
                self._offload(key, rid)
        if rid in self.away:
            outcome = self.main.runner.admit(self.main.step((Segment(rid, 1),)))
            # One that has its state may refuse before one that has not.
            here = outcome.key not in self._offloading() or not self._is_away(outcome.key, rid)
            offloading = outcome.reason is Refusal.OFFLOADING
            expect(
                not outcome.ok and (here or offloading), f"a step of {rid!r}, which is away, gave {outcome}"
            )

        if back:
            self._reload(rid)

    @precondition(lambda self: self.away)
    @rule(data=st.data())
    def reload(self, data: st.DataObject) -> None:
        """The state comes back when there is room."""
        self._reload(data.draw(st.sampled_from(sorted(self.away))))

    def _resolve_and_lease(self, rid: str, inputs: Sequence[int]) -> CachedPrefix | None:
        runner, before = self.main.runner, self.main.holdings()
        once, again = (runner.resolve_cached_prefix(rid, NODE, WALK, inputs) for _ in range(2))
        expect(once == again, f"asked twice for a prefix, the answers are {once} and {again}")
        leases, held = runner.lease_cached_prefix(rid, NODE, WALK), self.main.holdings()
        expect(leases == runner.lease_cached_prefix(rid, NODE, WALK), "leased twice, the pages are others")
        self.unchanged(held, "leasing again")
        runner.release_cached_prefix(rid, NODE, WALK)
        self.unchanged(before, "a lease that was given back")
        return runner.resolve_cached_prefix(rid, NODE, WALK, inputs)

    def _offload(self, key: str, rid: str) -> None:
        resource, before = _offloading(self.main, key), self.main.unheld()
        freed = resource.offload(rid)
        self.likewise(lambda twin: _offloading(twin, key).offload(rid))
        expect(resource.is_offloaded(rid), f"{rid!r} was offloaded from {key!r}, and is not away")
        self.away.add(rid)
        if key in before:
            came = self.main.unheld()[key] - before[key]
            expect(came == freed, f"offloading {rid!r} from {key!r} freed {came}, and said {freed}")

    def _reload(self, rid: str) -> None:
        for key in self._offloading():
            resource = _offloading(self.main, key)
            if resource.can_reload(rid):
                resource.reload(rid)
                expect(not resource.is_offloaded(rid), f"{rid!r} was reloaded into {key!r}, and is away")
                self.likewise(partial(_reload, key=key, rid=rid))
        if not any(self._is_away(key, rid) for key in self._offloading()):
            self.away.discard(rid)

    def _is_away(self, key: str, rid: str) -> bool:
        return _offloading(self.main, key).is_offloaded(rid)

    def _resources(self) -> list[object]:
        return list(self.main.resources.values())

    def _offloading(self) -> list[str]:
        return [key for key, each in self.main.resources.items() if isinstance(each, Offloading)]


def _offloading(bench: Bench, key: str) -> Offloading:
    resource = bench.resources[key]
    if not isinstance(resource, Offloading):
        raise EngineError(
            f"one {key!r} can be offloaded and its twin cannot: make builds different resources"
        )
    return resource


def _reload(bench: Bench, key: str, rid: str) -> None:
    _offloading(bench, key).reload(rid)
