"""How long the rest of a graph takes at least: the longest path from each step to the end."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence


def weights(names: Mapping[str, str], known: Mapping[str, float]) -> dict[str, float]:
    """Step id -> seconds, from step id -> name and name -> seconds.

    A name that was never seen counts as the median of those that were; with none known each step
    counts 1, so that the longest path is the one with the most steps.
    """
    usual = statistics.median(known.values()) if known else 1.0
    return {key: known.get(name, usual) for key, name in names.items()}


def remaining(needs: Mapping[str, Sequence[str]], weight: Mapping[str, float]) -> dict[str, float]:
    """Step id -> weight of the heaviest path that begins with it; `needs` has dependencies first."""
    left = {key: weight[key] for key in needs}
    for key in reversed(tuple(needs)):
        for dep in needs[key]:
            if dep in left:
                left[dep] = max(left[dep], weight[dep] + left[key])
    return left


def critical_path(needs: Mapping[str, Sequence[str]], left: Mapping[str, float]) -> tuple[str, ...]:
    """The heaviest path of all, from its first step to its last."""
    next_on: dict[str, str] = {}
    for key, deps in needs.items():
        for dep in deps:
            if dep in left and (dep not in next_on or left[key] > left[next_on[dep]]):
                next_on[dep] = key
    at = max(left, key=lambda key: left[key], default=None)
    path: list[str] = []
    while at is not None:
        path.append(at)
        at = next_on.get(at)
    return tuple(path)
