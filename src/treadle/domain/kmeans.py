"""Streaming k-means (Lloyd 1982), spherical or plain: partial sums by chunk, merged in order, one update.

Spherical: rows and centroids have length one, nearness is the cosine, distance is 1 - cosine. Plain:
Euclidean distance. Sums are float64 and merged in the order of the chunks, so the chunks decide the result,
not the workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treadle.errors import ArgumentError

Matrix = NDArray[np.float32]

_SLICE_VALUES = 4_000_000
"""Scores computed at a time: memory stays bounded however large the chunk."""


@dataclass(frozen=True)
class PartialSums:
    """What one chunk adds: per cluster the sum (k, d) and number (k,) of its rows, and the inertia in all.

    `far` (at most k rows) are the rows farthest from their centroids, `far_gaps` their squared distances,
    largest first: an empty cluster starts anew there.
    """

    sums: NDArray[np.float64]
    sizes: NDArray[np.int64]
    inertia: float
    far: Matrix
    far_gaps: NDArray[np.float64]

    def __add__(self, other: PartialSums) -> PartialSums:
        far = np.concatenate([self.far, other.far])
        gaps = np.concatenate([self.far_gaps, other.far_gaps])
        chosen = np.argsort(-gaps, kind="stable")[: len(self.sizes)]
        return PartialSums(
            self.sums + other.sums,
            self.sizes + other.sizes,
            self.inertia + other.inertia,
            far[chosen],
            gaps[chosen],
        )


class KMeansFit(NamedTuple):
    """Centroids (k, d) float32, and how the fit ended.

    The inertia is that of the last pass: the sum of squared distances, which on the sphere are 2 - 2 cosine.
    """

    centroids: Matrix
    inertia: float
    iterations: int
    converged: bool


def init_centroids(sample: Matrix, k: int, seed: int, *, spherical: bool = True) -> Matrix:
    """First centroids (k, d) float32 from a sample (n, d): greedy k-means++ (Arthur, Vassilvitskii 2007).

    Raises ArgumentError when k is below 1 or above n.
    """
    if not 1 <= k <= len(sample):
        raise ArgumentError(f"k must be from 1 to the {len(sample)} rows of the sample, got {k}")
    rng = np.random.default_rng(seed)
    points = _points(sample, spherical=spherical)
    trials = 2 + int(math.log(k))
    chosen = [int(rng.integers(len(points)))]
    gaps = _gaps(points, points[chosen])[:, 0]
    for _ in range(1, k):
        candidates = _draw(gaps, trials, rng)
        closer = np.minimum(gaps[:, None], _gaps(points, points[candidates]))
        best = int(np.argmin(closer.sum(axis=0, dtype=np.float64)))
        chosen.append(int(candidates[best]))
        gaps = closer[:, best]
    return points[chosen]


def partial_sums(chunk: Matrix, centroids: Matrix, *, spherical: bool = True) -> PartialSums:
    """One pass over a chunk (n, d); changes nothing."""
    points = _points(chunk, spherical=spherical)
    labels, gaps = _nearest(points, centroids)
    k, d = centroids.shape
    sums = np.zeros((k, d))
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    if len(starts):
        sums[labels[order][starts]] = np.add.reduceat(points[order].astype(np.float64), starts, axis=0)
    far = np.argsort(-gaps, kind="stable")[:k]
    return PartialSums(sums, np.bincount(labels, minlength=k), float(gaps.sum()), points[far], gaps[far])


def update(centroids: Matrix, sums: PartialSums, *, spherical: bool = True) -> tuple[Matrix, float]:
    """New centroids (k, d), and the sum of their squared moves.

    Empty clusters take the farthest rows, the first of them the farthest.
    """
    moved = sums.sums / np.maximum(sums.sizes, 1)[:, None]
    empty = np.flatnonzero(sums.sizes == 0)
    fresh = sums.far[: len(empty)]
    moved[empty[: len(fresh)]] = fresh
    moved[empty[len(fresh) :]] = centroids[empty[len(fresh) :]]
    after = _points(moved.astype(np.float32), spherical=spherical)
    return after, float(((after.astype(np.float64) - centroids) ** 2).sum())


def assign(chunk: Matrix, centroids: Matrix, *, spherical: bool = True) -> tuple[NDArray[np.int32], Matrix]:
    """Nearest centroid (n,) int32 and distance (n,) float32 of each row; ties go to the lower cluster."""
    labels, gaps = _nearest(_points(chunk, spherical=spherical), centroids)
    distances = gaps / 2 if spherical else np.sqrt(gaps)
    return labels, distances.astype(np.float32)


def fit(
    chunks: Callable[[], Iterable[Matrix]],
    centroids: Matrix,
    *,
    iterations: int = 100,
    tolerance: float = 1e-4,
    spherical: bool = True,
) -> KMeansFit:
    """Pass over the chunks until the centroids move by at most `tolerance`, or `iterations` are over.

    The move is a root mean square over the centroids. `chunks` opens the same chunks in the same order on
    every call. Raises ArgumentError when there is none.
    """
    inertia, converged, done = math.inf, False, 0
    while done < iterations and not converged:
        sums = merge(partial_sums(chunk, centroids, spherical=spherical) for chunk in chunks())
        centroids, shift = update(centroids, sums, spherical=spherical)
        inertia, done = sums.inertia, done + 1
        converged = shift <= tolerance**2 * len(centroids)
    return KMeansFit(centroids, inertia, done, converged)


def merge(parts: Iterable[PartialSums]) -> PartialSums:
    """The parts added in order. Raises ArgumentError when there is none."""
    total: PartialSums | None = None
    for part in parts:
        total = part if total is None else total + part
    if total is None:
        raise ArgumentError("no chunk to cluster")
    return total


def _points(rows: Matrix, *, spherical: bool) -> Matrix:
    if not spherical:
        return rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


def _nearest(points: Matrix, centroids: Matrix) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Label and squared distance of each row."""
    labels = np.empty(len(points), np.int32)
    gaps = np.empty(len(points), np.float64)
    for rows in _slices(len(points), len(centroids)):
        between = _gaps(points[rows], centroids)
        labels[rows] = between.argmin(axis=1)
        gaps[rows] = between[np.arange(len(between)), labels[rows]]
    return labels, gaps


def _slices(n: int, k: int) -> Iterator[slice]:
    size = max(1, _SLICE_VALUES // k)
    return (slice(start, start + size) for start in range(0, n, size))


def _gaps(points: Matrix, centroids: Matrix) -> Matrix:
    """Squared distances (n, k), never below zero."""
    squares = np.einsum("nd,nd->n", points, points)[:, None] + np.einsum("kd,kd->k", centroids, centroids)
    return np.asarray(np.maximum(squares - 2 * (points @ centroids.T), 0), np.float32)


def _draw(gaps: Matrix, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows with probability proportional to gap; any row when all gaps are zero."""
    edges = np.cumsum(gaps, dtype=np.float64)
    if edges[-1] <= 0:
        return rng.integers(len(gaps), size=count)
    drawn = np.searchsorted(edges, rng.random(count) * edges[-1], side="right")
    return np.asarray(np.minimum(drawn, len(gaps) - 1))
