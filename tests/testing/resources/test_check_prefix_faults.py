"""The check finds faults in what caches prefixes, leases them and leaves trails."""

from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import strategies as st

from tests.testing.resources.first_found import FIRST_FOUND
from tests.testing.resources.shelf import WHOLE, Row, Shelf
from treadle.engine.resources import ResourceStep, StepContext
from treadle.engine.resources.step import CachedPrefix
from treadle.errors import EngineError
from treadle.testing.resources import check_resource

TEXTS = st.sampled_from([None, (1, 2, 3), (1, 1)])


def walk(text: object, stored: int) -> tuple[str, Sequence[int]] | None:
    """A request with a text is first in a walk that may be served whole."""
    return (WHOLE, text) if isinstance(text, tuple) and not stored else None


class HoldsASecondTime(Shelf):
    def resolve_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        found = super().resolve_cached_prefix(rid, node_name, graph_walk, inputs)
        self.own(self.rows[rid].lease)
        return found


class ForgetsWhatItAnswered(Shelf):
    def resolve_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        if self.rows[rid].lease:
            return None
        return super().resolve_cached_prefix(rid, node_name, graph_walk, inputs)


class KeepsWhatIsGivenBack(Shelf):
    def release_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> None:
        """Later, with the request."""


class ServesOnlyTwins(Shelf):
    """What was undone has an end in its index."""

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        super().rollback(step, ctx)
        if self.kept and ctx.plan_results:
            self.drop([self.kept.popitem()[1]])


class AdoptsWhatIsNotHere(Shelf):
    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        return True


class IsNeverAtFault(Shelf):
    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        return super().adopt_cached_prefix(rid, node_name, graph_walk, lease, caught_up=False)


class AdoptsOtherPages(Shelf):
    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        adopted = super().adopt_cached_prefix(rid, node_name, graph_walk, lease, caught_up)
        if adopted:
            self.hold(self.rows[rid], lease[:-1])
        return adopted


class HoldsMoreEachTime(Shelf):
    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        held = list(self.rows[rid].lease)
        adopted = super().adopt_cached_prefix(rid, node_name, graph_walk, lease, caught_up)
        if adopted:
            self.hold(self.rows[rid], [*held, *lease])
        return adopted


class HoldsWhatItDoesNotAdopt(Shelf):
    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        adopted = super().adopt_cached_prefix(rid, node_name, graph_walk, lease, caught_up)
        if not adopted:
            self.rows[rid].units.append(self.free.pop())
        return adopted


class ServesAPageMore(Shelf):
    def serve(self, row: Row, length: int) -> None:
        super().serve(row, length)
        row.units.append(self.free.pop() if self.free else row.units[-1])


class IsNotToldOfWalksServedWhole(Shelf):
    def complete_cached_walk(self, rid: str, node_name: str, graph_walk: str) -> None:
        """Its next step would begin anew."""


class LeavesNoTrail(Shelf):
    def page_trail(self) -> tuple[int, int]:
        return 0, 0


class LeavesATrailByChance(Shelf):
    numbers = count()

    def __init__(self) -> None:
        super().__init__()
        self.digest = next(self.numbers)


FAULTS = (
    HoldsASecondTime,
    ForgetsWhatItAnswered,
    KeepsWhatIsGivenBack,
    ServesOnlyTwins,
    AdoptsWhatIsNotHere,
    IsNeverAtFault,
    AdoptsOtherPages,
    HoldsMoreEachTime,
    HoldsWhatItDoesNotAdopt,
    ServesAPageMore,
    IsNotToldOfWalksServedWhole,
    LeavesNoTrail,
    LeavesATrailByChance,
)


@pytest.mark.parametrize("faulty", FAULTS)
def test_a_fault_is_found(faulty: type[Shelf]) -> None:
    """A prefix that is served wrong is a text that goes on from another one."""
    with pytest.raises((EngineError, IndexError)):
        check_resource(faulty, shown=lambda plan: plan, limit=6, requests=TEXTS, walks=walk, how=FIRST_FOUND)


def test_what_has_no_fault_passes() -> None:
    """Or else what the check finds says nothing."""
    check_resource(Shelf, shown=lambda plan: plan, limit=6, requests=TEXTS, walks=walk)
