"""The cycle of a step over the resources that it declares, and the opening and removing of requests.

    ingest    on every resource, or on none
    admit     every declared resource reserves its part, or none does
    plan      dependencies first, each result filed before the next one plans
    commit    what was reserved is used
    rollback  what was reserved is given back, and the step does not run
    remove    everything that a request holds is freed

Refusal is ordinary and costs a loop. An exception is not: then every resource is still given its chance to
give back, in reverse, and the first error is the one that is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from treadle.engine.resources.protocols import Capturing, PlansAhead
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.scope import Scope
from treadle.engine.resources.step import FullAdmitOutcome, SubmoduleStep
from treadle.errors import EngineError
from treadle.kernel import Unwind

Sweep = Sequence[tuple[str, Resource]]
"""Key and resource, in the order in which they are visited."""

_ADMITTED = FullAdmitOutcome(ok=True, ready=True)
_PENDING = FullAdmitOutcome(ok=True, ready=False)


class Cycle:
    """Drives resources through one step after another.

    Args:
        scope: what there is; its order is the order of every sweep.
        driven: what is called in its place, for the verbs of `Resource`.
    """

    def __init__(self, scope: Scope, driven: Mapping[str, Resource]) -> None:
        self._scope = scope
        self._all: Sweep = tuple((key, driven[key]) for key in scope.resources)
        self._sweeps: dict[tuple[str, ...], Sweep] = {}
        self._open: set[str] = set()
        self._padding: set[str] = set()
        capturing = {key: each for key, each in scope.resources.items() if isinstance(each, Capturing)}
        self._rows = {key: each.ingest_capture_row for key, each in capturing.items()}

    def sweep(self, step: SubmoduleStep) -> Sweep:
        """What the step declares, in order.

        Raises:
            UnknownNameError: also a KeyError; the step names a key that is no resource.
        """
        keys = tuple(step.resources)
        # A node declares the same few sets of keys again and again.
        if keys not in self._sweeps:
            self._scope.known(keys)
            self._sweeps[keys] = tuple(pair for pair in self._all if pair[0] in step.resources)
        return self._sweeps[keys]

    def ingest(self, rid: str, overrides: Mapping[str, object]) -> None:
        """Open a request everywhere or nowhere; a live one is left as it is.

        Raises:
            UnknownNameError: overrides for a key that is no resource.
            EngineError: a padding row has that name.
        """
        self._scope.known(overrides)
        if rid in self._padding:
            raise EngineError(
                f"{rid!r} is a padding row, whose tokens nobody keeps: name the request otherwise"
            )

        def opening(key: str, resource: Resource) -> None:
            resource.ingest(rid, overrides.get(key))

        self._open_all(rid, self._open, opening)

    def ingest_capture_row(self, rid: str) -> None:
        """Open a padding row everywhere or nowhere; a live one is left as it is.

        Raises:
            EngineError: a request has that name.
        """
        if rid in self._open:
            raise EngineError(f"{rid!r} is an open request: give the padding row a name that no request has")

        def opening(key: str, resource: Resource) -> None:
            if key in self._rows:
                self._rows[key](rid)
            else:
                resource.ingest(rid, None)

        self._open_all(rid, self._padding, opening)

    def remove(self, rid: str) -> None:
        """Drop a request from all, each one tried; safe for one that is unknown or half open."""
        self._open.discard(rid)
        self._padding.discard(rid)
        with Unwind() as unwind:
            for _, resource in self._all:
                unwind.push(resource.remove, rid)

    def admit(self, step: SubmoduleStep, sweep: Sweep) -> FullAdmitOutcome:
        """Reserve in order; at the first refusal, or error, all who were asked give back."""
        ready, asked = True, 0
        try:
            for key, resource in sweep:
                asked += 1  # first: what raises half way may have reserved a part
                answer = resource.admit(step.resources[key], step.ctx)
                if not answer.ok:
                    break
                ready = ready and answer.ready
            else:
                return _ADMITTED if ready else _PENDING
        except BaseException:
            with self._giving_back(step, sweep[:asked]):
                raise
        self.rollback(step, sweep[:asked])
        return FullAdmitOutcome(ok=False, ready=False, reason=answer.reason, key=key)

    def rollback(self, step: SubmoduleStep, sweep: Sweep) -> None:
        """Give back what the step reserved, in reverse, each resource tried."""
        with self._giving_back(step, sweep):
            pass

    def plan(self, step: SubmoduleStep, sweep: Sweep, ahead: Mapping[str, PlansAhead]) -> dict[str, object]:
        """Plan in order, on an emptied context; those in `ahead` promote what they have planned already."""
        results = step.ctx.plan_results
        results.clear()
        for key, resource in sweep:
            planning = ahead[key].promote if key in ahead else resource.plan
            results[key] = planning(step.resources[key], step.ctx)
        return results

    def commit(self, step: SubmoduleStep, sweep: Sweep) -> None:
        """What was reserved is used."""
        for key, resource in sweep:
            resource.commit(step.resources[key], step.ctx)

    def _open_all(self, rid: str, among: set[str], opening: Callable[[str, Resource], None]) -> None:
        if rid in among:
            return
        with Unwind() as unwind:
            for key, resource in self._all:
                # Pushed first: what raises half way may have opened a part.
                unwind.push(resource.remove, rid)
                opening(key, resource)
            # Pushed and then done, as well: an interrupt leaves no request open that nobody knows of.
            unwind.push(among.discard, rid)
            among.add(rid)
            unwind.release()

    def _giving_back(self, step: SubmoduleStep, sweep: Sweep) -> Unwind:
        unwind = Unwind()
        for key, resource in sweep:
            unwind.push(resource.rollback, step.resources[key], step.ctx)
        return unwind
