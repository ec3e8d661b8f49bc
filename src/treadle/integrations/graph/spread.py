"""Keeps things on a line apart: steps in a layer of a graph, names beside a chart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise


def spread(wish: Sequence[float], widths: Sequence[float], gap: float = 0.0) -> list[float]:
    """The middles nearest to `wish` (least squares), in that order and at least `gap` apart.

    Isotonic regression by pooling adjacent violators (Ayer and others 1955), with the room taken off.
    """
    if not wish:
        return []
    room = [(left + right) / 2 + gap for left, right in pairwise(widths)]
    offsets = list(accumulate(room, initial=0.0))
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wish, offsets, strict=True):
        mean, count = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    level = [mean for mean, count in pools for _ in range(count)]
    return [x + offset for x, offset in zip(level, offsets, strict=True)]
