"""Which resources a node owns, and which of them have an ability: settled once, when the runner is built."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

from treadle.engine.resources.resource import Resource
from treadle.errors import UnknownNameError

A = TypeVar("A")


class Share(Generic[A]):
    """The resources with one ability, whole and for each node its own.

    Args:
        able: key -> resource, in the order of every sweep.
        nodes: node name -> the keys it owns; None when every node owns all.
    """

    def __init__(self, able: Mapping[str, A], nodes: Mapping[str, Collection[str]] | None) -> None:
        self._all = able
        self._nodes = (
            None
            if nodes is None
            else {
                node: {key: each for key, each in able.items() if key in keys} for node, keys in nodes.items()
            }
        )

    def of(self, node_name: str | None) -> Mapping[str, A]:
        """Key -> resource of one node, in order; of all without a node map or without a node.

        Raises:
            UnknownNameError: the map does not list the node. Asking a stranger about resources that
                are not its own would gate it on another node's cache.
        """
        if self._nodes is None or node_name is None:
            return self._all
        try:
            return self._nodes[node_name]
        except KeyError:
            raise UnknownNameError("node", node_name, self._nodes) from None

    def pick(self, node_name: str | None, keys: Iterable[str]) -> dict[str, A]:
        """Those of one node that are named, in the order of the names.

        Raises:
            UnknownNameError: the node is not listed, or none of its resources with this ability has that key.
        """
        own = self.of(node_name)
        for key in keys:
            if key not in own:
                raise UnknownNameError("resource", key, own)
        return {key: own[key] for key in keys}


class Scope:
    """The resources of a runner, and the nodes that own them.

    Args:
        resources: key -> resource.
        order: the keys in the order in which every sweep visits them.
        node_resources: node name -> the keys it owns; None when there is one node, which owns all.

    Raises:
        UnknownNameError: a node owns a key that is no resource.
    """

    def __init__(
        self,
        resources: Mapping[str, Resource],
        order: Sequence[str],
        node_resources: Mapping[str, Collection[str]] | None,
    ) -> None:
        self.resources = MappingProxyType({key: resources[key] for key in order})
        self._nodes = (
            None
            if node_resources is None
            else {node: frozenset(self.known(keys)) for node, keys in node_resources.items()}
        )

    def share(self, able: Mapping[str, A]) -> Share[A]:
        """Each node's part of the resources that have one ability."""
        return Share(able, self._nodes)

    def known(self, keys: Collection[str]) -> Collection[str]:
        """The keys, all of which are resources.

        Raises:
            UnknownNameError: also a KeyError; one is not.
        """
        for key in keys:
            if key not in self.resources:
                raise UnknownNameError("resource", key, self.resources)
        return keys
