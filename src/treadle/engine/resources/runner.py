"""Drives resources through the cycle of a step: admit, plan, commit; and opens and removes requests.

The runner is blind to kinds. It keeps the order (dependencies first), the scope (a node's own
resources), and the promise: a step is admitted by all or reserves nothing, a request is open on all
or on none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Protocol

from treadle.engine.resources.resource import Resource
from treadle.engine.resources.step import FullAdmitOutcome, SubmoduleStep
from treadle.errors import UnknownNameError
from treadle.kernel import Unwind, arrange


class Dependent(Protocol):
    """A built resource, or the spec that a deployment declares before one is built."""

    @property
    def depends_on(self) -> Collection[str]:
        """Keys that come before this one."""


def topo_sort(resources: Mapping[str, Dependent]) -> tuple[str, ...]:
    """Keys in dependency order, layer by layer, ties sorted.

    Raises:
        GraphError: also a ValueError; an unknown key, a self dependency or a cycle, by name.
    """
    return arrange({key: resource.depends_on for key, resource in resources.items()})


class StepRunner:
    """Drives `resources` through each step.

    Args:
        resources: key -> resource.
        node_resources: node name -> keys of the resources it owns; None when there is one node,
            which owns all.
        enable_nvtx: recorded only; no verb is marked for a profiler yet.

    Raises:
        GraphError: the dependencies cannot be put in order.
        UnknownNameError: a node owns a key that is no resource.
    """

    def __init__(
        self,
        resources: Mapping[str, Resource],
        node_resources: Mapping[str, Collection[str]] | None = None,
        enable_nvtx: bool = False,
    ) -> None:
        self._resources = MappingProxyType(dict(resources))
        self._order = topo_sort(resources)
        self._nodes = None if node_resources is None else self._scoped(node_resources)
        self._open: set[str] = set()
        self.enable_nvtx = enable_nvtx

    @property
    def resources(self) -> Mapping[str, Resource]:
        """Key -> resource, read only."""
        return self._resources

    @property
    def order(self) -> tuple[str, ...]:
        """The keys in the order in which every sweep visits them."""
        return self._order

    def keys_of(self, node_name: str | None = None) -> tuple[str, ...]:
        """The keys that a node owns, in order; all of them without a node map or without a node.

        Raises:
            UnknownNameError: the map does not list the node. Asking a stranger about resources that
                are not its own would gate it on another node's cache.
        """
        if self._nodes is None or node_name is None:
            return self._order
        if node_name not in self._nodes:
            raise UnknownNameError("node", node_name, self._nodes)
        return self._nodes[node_name]

    def ingest_request(self, rid: str, overrides: Mapping[str, object] | None = None) -> None:
        """Open state for a request on all resources, or on none; a live request is left as it is.

        Args:
            rid: the request.
            overrides: resource key -> what only that resource gets to see.

        Raises:
            UnknownNameError: overrides for a key that is no resource.
        """
        overrides = overrides or {}
        self._check_known(overrides)
        if rid in self._open:
            return
        with Unwind() as unwind:
            for key in self._order:
                # Pushed first: what raises half way may have opened a part.
                unwind.push(self._resources[key].remove, rid)
                self._resources[key].ingest(rid, overrides.get(key))
            unwind.release()
        self._open.add(rid)

    def remove_request(self, rid: str) -> None:
        """Drop a request from all resources, each one tried; safe for one that is unknown or half open."""
        self._open.discard(rid)
        with Unwind() as unwind:
            for key in self._order:
                unwind.push(self._resources[key].remove, rid)

    def admit(self, step: SubmoduleStep) -> FullAdmitOutcome:
        """Reserve capacity for a step; at the first refusal give back everything it reserved.

        Raises:
            UnknownNameError: also a KeyError; the step names a key that is no resource.
        """
        with Unwind() as unwind:
            outcome = self._ask(step, unwind)
            if outcome.ok:
                unwind.release()
        return outcome

    def rollback_admit(self, step: SubmoduleStep) -> None:
        """Give back what an admitted step reserved; a committed step has nothing to give back."""
        with Unwind() as unwind:
            for key in self._declared(step):
                unwind.push(self._resources[key].rollback, step.resources[key], step.ctx)

    def plan(self, step: SubmoduleStep) -> dict[str, object]:
        """Plan in dependency order, each result filed in the context before the next one plans.

        Raises:
            UnknownNameError: also a KeyError; the step names a key that is no resource.
        """
        declared = self._declared(step)
        results = step.ctx.plan_results
        results.clear()
        for key in declared:
            results[key] = self._resources[key].plan(step.resources[key], step.ctx)
        return results

    def commit(self, step: SubmoduleStep) -> None:
        """Record consumption, after the forward pass was issued."""
        for key in self._declared(step):
            self._resources[key].commit(step.resources[key], step.ctx)

    def check_integrity(self) -> None:
        """Ask every resource to prove its sums; for tests and idle moments."""
        for key in self._order:
            self._resources[key].check_integrity()

    def _declared(self, step: SubmoduleStep) -> list[str]:
        self._check_known(step.resources)
        return [key for key in self._order if key in step.resources]

    def _ask(self, step: SubmoduleStep, unwind: Unwind) -> FullAdmitOutcome:
        """Ask in order until one refuses; whoever was asked is in `unwind`."""
        ready = True
        for key in self._declared(step):
            resource, part = self._resources[key], step.resources[key]
            # Pushed first: what raises half way may have reserved a part.
            unwind.push(resource.rollback, part, step.ctx)
            answer = resource.admit(part, step.ctx)
            if not answer.ok:
                return FullAdmitOutcome(ok=False, ready=False, reason=answer.reason, key=key)
            ready = ready and answer.ready
        return FullAdmitOutcome(ok=True, ready=ready)

    def _check_known(self, keys: Collection[str]) -> None:
        for key in keys:
            if key not in self._resources:
                raise UnknownNameError("resource", key, self._resources)

    def _scoped(self, node_resources: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
        for keys in node_resources.values():
            self._check_known(keys)
        return {
            node: tuple(key for key in self._order if key in keys) for node, keys in node_resources.items()
        }
