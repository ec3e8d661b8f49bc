"""All events: those of every resource, of those that can do more, and of those that move away and back."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from treadle.engine.resources import Refusal, Segment
from treadle.engine.resources.protocols import Offloading
from treadle.errors import EngineError
from treadle.testing.resources.bench import Bench, expect
from treadle.testing.resources.prefixes import BeginsBehindPrefixes


class ResourceMachine(BeginsBehindPrefixes):
    """All events."""

    @precondition(lambda self: self.stored and self._offloading())
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

    def _offloading(self) -> list[str]:
        return list(self.main.having(Offloading))  # type: ignore[type-abstract]


def _offloading(bench: Bench, key: str) -> Offloading:
    resource = bench.resources[key]
    if not isinstance(resource, Offloading):
        raise EngineError(
            f"one {key!r} can be offloaded and its twin cannot: make builds different resources"
        )
    return resource


def _reload(bench: Bench, key: str, rid: str) -> None:
    _offloading(bench, key).reload(rid)
