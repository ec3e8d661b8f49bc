"""Proves that resources of the engine keep their contract, over random sequences of what may happen to them.

    from treadle.testing.resources import check_resource

    def test_my_resource_keeps_its_contract() -> None:
        check_resource(lambda: MyResource(slots=4))

Requests come and go; steps are refused, broken off, rolled back, staged, dropped and committed, all by
the engine's own `StepRunner`. After each of these it is asked whether all sums are right, nothing is lost,
nothing is owned twice, and what was given back stands where it stood. What a resource can do beyond the
verbs of `Resource` is tried too: planning ahead, publishing and retrieving, padding rows and static buffers,
prefixes, leases, offloading, forks. One that shows its `holdings` is checked unit by unit; of any, a twin
that never saw what was undone must do the same.

Needs hypothesis: `pip install 'treadle[testing]'`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from treadle.engine.resources import Resource, ResourceStep, Segment, SubmoduleStep
from treadle.engine.resources.pages import Fork
from treadle.errors import MissingExtraError

try:
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis import strategies as st
    from hypothesis.stateful import run_state_machine_as_test

    from treadle.testing.resources.abilities import ResourceMachine
except ModuleNotFoundError as error:
    raise MissingExtraError(error.name or "hypothesis", "testing", "checking resources") from error

from treadle.testing.resources.bench import Parts, Subject

R = TypeVar("R", bound=Resource)

THOROUGH = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],  # to explain takes longer than to shrink
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
"""The same hundred sequences of thirty events each time."""


def check_resources(
    make: Callable[[], Mapping[str, Resource]],
    *,
    requests: st.SearchStrategy[Mapping[str, object]] | None = None,
    spans: st.SearchStrategy[int] | None = None,
    limit: int = 16,
    parts: Callable[[Sequence[Segment]], Parts] | None = None,
    forks: Callable[[Parts, Sequence[Fork], Sequence[Fork]], Parts] | None = None,
    walks: Callable[[Mapping[str, object], int], tuple[str, Sequence[int]] | None] | None = None,
    captured: bool = False,
    compute: Callable[[Mapping[str, Resource], SubmoduleStep], None] | None = None,
    shown: Mapping[str, Callable[[object], object]] | None = None,
    seen: Mapping[str, Callable[[Resource, str, str], object]] | None = None,
    how: settings = THOROUGH,
) -> None:
    """Check resources that are used together.

    Make them scarce: what never refuses is never seen giving back.

    Args:
        make: new ones, key -> resource; called anew for each sequence, and for each twin.
        requests: what a request is opened with, key -> override; nothing by default. An override that a
            resource refuses by an EngineError is a request that is not opened.
        spans: how many tokens a row adds; by default 1 to 5.
        limit: tokens that one stream of a request stores at most.
        parts: what each resource has to do for some rows; by default all have a part, for all rows.
        forks: puts forks, those before the step and those after it, into the parts of the resources that
            understand them, and returns all parts. Without it no step forks, and all rows are of `main`.
        walks: from what a request was opened with and how many tokens it stored, the walk it is in next,
            where that was told when it was opened: its name and its inputs.
        captured: also run steps of one token a row in static buffers, `ctx.slot`.
        compute: the forward pass, between plan and commit.
        shown: key -> what is to be compared of the resource's plans, as plain values. A plan of which this
            is different than that of the twin depends on what was undone.
        seen: key -> what that resource has stored in a stream, by its request and label, as plain values. It
            changes by steps of that stream only, and a fork and what another node retrieves are the same.
        how: how many sequences, and how long.

    Raises:
        EngineError: a resource broke its contract; its notes have the shortest sequence that shows it.
    """
    subject = Subject(
        make=make,
        requests=requests if requests is not None else st.just({}),
        spans=spans if spans is not None else st.integers(1, 5),
        limit=limit,
        parts=parts,
        forks=forks,
        walks=walks,
        captured=captured,
        compute=compute,
        shown=shown or {},
        seen=seen or {},
    )

    class Checked(ResourceMachine):
        def __init__(self) -> None:
            super().__init__(subject)

    run_state_machine_as_test(Checked, settings=how)


def check_resource(
    make: Callable[[], R],
    *,
    requests: st.SearchStrategy[object] | None = None,
    spans: st.SearchStrategy[int] | None = None,
    limit: int = 16,
    forks: Callable[[ResourceStep, Sequence[Fork], Sequence[Fork]], ResourceStep] | None = None,
    walks: Callable[[object, int], tuple[str, Sequence[int]] | None] | None = None,
    captured: bool = False,
    compute: Callable[[R, SubmoduleStep], None] | None = None,
    shown: Callable[[object], object] | None = None,
    seen: Callable[[R, str, str], object] | None = None,
    how: settings = THOROUGH,
) -> None:
    """Check one resource that depends on no other; see `check_resources`.

    Args:
        make: a new one.
        requests: the override of a request.
        spans: how many tokens a row adds.
        limit: tokens that one stream of a request stores at most.
        forks: puts forks into its part of a step.
        walks: the next walk of a request, by its override and what it stored.
        captured: also run steps in static buffers.
        compute: the forward pass.
        shown: what is to be compared of its plans.
        seen: what it has stored in a stream, by request and label.
        how: how many sequences, and how long.

    Raises:
        EngineError: the resource broke its contract.
    """
    key = "resource"
    check_resources(
        lambda: {key: make()},
        requests=None if requests is None else requests.map(lambda override: {key: override}),
        spans=spans,
        limit=limit,
        forks=None if forks is None else lambda parts, *made: {key: forks(parts[key], *made)},
        walks=None if walks is None else lambda overrides, stored: walks(overrides.get(key), stored),
        captured=captured,
        compute=None if compute is None else lambda resources, step: compute(cast("R", resources[key]), step),
        shown=None if shown is None else {key: shown},
        seen=None if seen is None else {key: lambda resource, *stream: seen(cast("R", resource), *stream)},
        how=how,
    )
