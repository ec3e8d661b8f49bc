"""How a check is told what its resources are for."""

import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from tests.testing.resources.pool import Pool
from treadle.engine.resources import (
    ReservesNothing,
    Resource,
    ResourceStep,
    Segment,
    StepContext,
    SubmoduleStep,
)
from treadle.errors import EngineError
from treadle.testing.resources import THOROUGH, check_resource, check_resources

FEW = settings(THOROUGH, max_examples=10)


class Reader(ReservesNothing):
    """Reads the plan of the pool."""

    depends_on = ("pool",)

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        return [ctx.result("pool", dict)[row.request_id] for row in step.rows]


def test_resources_that_read_each_other_are_checked_together() -> None:
    """What one plans from is what another has planned in the same step."""

    def make() -> Mapping[str, Resource]:
        return {"pool": Pool(), "reader": Reader()}

    check_resources(make, shown={"reader": lambda plan: plan}, how=FEW)


def test_a_step_gives_each_resource_the_part_that_is_said() -> None:
    """A sampler has only the rows that need a token."""
    seen: set[int] = set()

    class Counting(Reader):
        def plan(self, step: ResourceStep, ctx: StepContext) -> object:
            seen.add(len(step.rows))
            return None

    def parts(rows: Sequence[Segment]) -> Mapping[str, ResourceStep]:
        return {"pool": ResourceStep(), "reader": ResourceStep(tuple(rows[:1]))}

    check_resources(lambda: {"pool": Pool(), "reader": Counting()}, parts=parts, how=FEW)
    assert seen == {1}


def test_the_forward_pass_runs_between_plan_and_commit() -> None:
    """A resource whose contents matter is filled as it is in an engine."""
    computed: list[int] = []

    def compute(pool: Resource, step: SubmoduleStep) -> None:
        assert isinstance(pool, Pool)
        computed.append(sum(pool.rows[row.request_id].taken for row in step.segments))

    check_resource(Pool, compute=compute, how=FEW)
    assert max(computed) > 0


def test_requests_are_opened_with_what_is_drawn_and_never_beyond_the_limit() -> None:
    """An override that is refused is a request that is not opened, and no fault."""
    longest: list[int] = []

    class Choosy(Pool):
        def ingest(self, rid: str, overrides: object | None) -> None:
            assert isinstance(overrides, int)
            if overrides > 3:
                raise EngineError("no room for so much")
            super().ingest(rid, overrides)

        def commit(self, step: ResourceStep, ctx: StepContext) -> None:
            super().commit(step, ctx)
            longest.extend(self.rows[row.request_id].stored for row in step.rows)

    check_resource(lambda: Choosy(20), requests=st.integers(0, 5), limit=7, spans=st.just(3), how=FEW)
    assert max(longest) == 7


def test_without_hypothesis_the_error_gives_the_install_line() -> None:
    """It is asked for here only; the rest of treadle.testing does without."""
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import treadle.testing\n"
        "import treadle.testing.resources"
    )
    told = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True).stderr
    assert "MissingExtraError" in told
    assert "pip install 'treadle[testing]'" in told


@pytest.mark.parametrize("module", ["torch", "hypothesis"])
def test_the_tools_for_steps_load_neither_torch_nor_hypothesis(module: str) -> None:
    """A test of a step that computes nothing starts at once."""
    code = f"import sys, treadle.testing; sys.exit({module!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
