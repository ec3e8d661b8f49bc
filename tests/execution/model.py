"""What a run must do, in the simplest words: the model that random runs are held to."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass
class Node:
    """A step, what stands of it, and how often its body has ended well."""

    name: str
    deps: tuple[str, ...]
    tries: int  # how many attempts it has
    has_file: bool
    slots: int  # of the tag that all share
    builds: int = 0
    stands: bool = False
    whole: bool = True  # its files are there
    value: str = ""
    made_from: dict[str, int] = field(default_factory=dict)


@dataclass
class Expected:
    """How each step must end, and in how many attempts."""

    cached: set[str] = field(default_factory=set)
    done: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, set[str]] = field(default_factory=dict)

    def bodies(self) -> dict[str, int]:
        """How often each body runs."""
        return {**self.done, **self.failed}


def value_of(name: str, build: int, deps: Collection[str]) -> str:
    """What build number `build` of a step gives, from what its dependencies gave."""
    return sha256(f"{name} {build} {sorted(deps)}".encode()).hexdigest()[:12]


class Model:
    """The nodes in an order with dependencies first."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def below(self, names: Collection[str]) -> set[str]:
        """These and all that they need."""
        found = set(names)
        for node in reversed(self.nodes.values()):
            if node.name in found:
                found |= set(node.deps)
        return found

    def has_to_run(self, targets: Collection[str], forced: Collection[str]) -> tuple[set[str], set[str]]:
        """Which steps are done, and which are stale: round and round until nothing changes."""
        known = self.below(targets)
        there = {name for name in known if self._is_there(self.nodes[name])}
        stale = (set(forced) & known) | (set(targets) - there)
        stale |= {name for name in there if self._is_outdated(self.nodes[name], there)}
        while True:
            before = len(stale)
            stale |= {name for name in known if stale & set(self.nodes[name].deps)}
            stale |= {dep for name in stale for dep in self.nodes[name].deps} - there
            if len(stale) == before:
                return there - stale, stale

    def expect(
        self, targets: Collection[str], forced: Collection[str], faults: Mapping[str, int]
    ) -> Expected:
        """The ends of a run in which bodies fail `faults` times before they end well."""
        done, stale = self.has_to_run(targets, forced)
        expected = Expected(cached=done)
        for node in self.nodes.values():
            if node.name not in stale:
                continue
            culprits = {dep for dep in node.deps if dep in expected.failed}
            culprits.update(*(expected.skipped.get(dep, ()) for dep in node.deps))
            faulty = faults.get(node.name, 0)
            if culprits:
                expected.skipped[node.name] = culprits
            elif faulty >= node.tries:
                expected.failed[node.name] = node.tries
            else:
                expected.done[node.name] = faulty + 1
        return expected

    def build(self, name: str) -> None:
        """The body of the step has ended well, and the step is committed."""
        node = self.nodes[name]
        node.builds += 1
        node.stands = node.whole = True
        node.value = value_of(name, node.builds, [self.nodes[dep].value for dep in node.deps])
        node.made_from = {dep: self.nodes[dep].builds for dep in node.deps}

    def _is_there(self, node: Node) -> bool:
        return node.stands and (node.whole or not node.has_file)

    def _is_outdated(self, node: Node, there: set[str]) -> bool:
        """Whether something that it needs was built anew since."""
        return any(self.nodes[dep].builds != node.made_from[dep] for dep in node.deps if dep in there)
