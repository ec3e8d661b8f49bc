"""Run type `cluster`: k-means over vectors, in three readings of the input.

The first settles the account and takes a sample, from which the first centroids are chosen. The fit reads the
input once for each iteration, its partial sums merged in the order of units. The last reading assigns and
writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treadle.domain import kmeans
from treadle.domain.columns import vector_column
from treadle.domain.kmeans import Matrix
from treadle.domain.result import Counters
from treadle.errors import RunError
from treadle.manifest.model import ClusterSection
from treadle.processing.checks import required_section
from treadle.processing.job import WHOLE, Job
from treadle.processing.placing import errors_placed_in
from treadle.processing.shuffle import read_whole, spills_of
from treadle.processing.streams import batches_of, lacking, units_of
from treadle.processing.units import UnitRun, run_units
from treadle.processing.vectors import Vectors, no_vectors, vectors_of
from treadle.storage import RowBatch, WorkUnit

_INPUT = "vectors"
_COLUMN = "vector"
_MADE = ("cluster", "distance")
_SIZES = "sizes"


def run_cluster(job: Job) -> Counters:
    """Input "vectors" (vector: a list of numbers, and any other columns) to two outputs.

    "centroids", one file: cluster int32, size int64, vector; `cluster.spherical` makes them of length one.
    "assignments", a file for each unit: the other columns, cluster int32, distance float32 (1 - cosine if
    spherical). The counters `iterations` and `converged` (0 or 1) tell how the fit ended.

    Raises:
        ManifestError: the section `cluster` or a dataset is missing or unknown.
        RunError: fewer usable vectors than clusters, a column of the wrong kind, or too many bad rows.
    """
    section = required_section(job.manifest, "cluster", job.manifest.cluster)
    account = job.account
    sample = _Sample(section.sample_rows, job.manifest.runtime.seed)
    for unit, batch, vectors in _read(job):
        _check_free(batch)
        account.settle(unit, batch, out=len(vectors.indices), rejects=vectors.rejects)
        sample.add(vectors.matrix)
    for unit in units_of(job, _INPUT):
        account.end_unit(unit)
    fit = _fit(job, section, sample.rows, account.close())
    account.note("iterations", fit.iterations)
    account.note("converged", int(fit.converged))
    sizes = _assign(job, fit.centroids, spherical=section.spherical)
    with job.timed("write"):
        job.session.write("centroids", WHOLE, _centroids_table(fit.centroids, sizes))
    return account.close()


def _check_free(batch: RowBatch) -> None:
    if taken := sorted(set(batch.rows.schema.names) & set(_MADE)):
        raise RunError(
            f"{batch.source} has the column {taken[0]!r}, which this run makes: leave it out of the input"
        )


def _fit(job: Job, section: ClusterSection, sample: Matrix, counters: Counters) -> kmeans.KMeansFit:
    if len(sample) < section.clusters:
        place = f"at most {section.sample_rows:,} of {counters.rows_out:,} usable vectors"
        raise RunError(
            f"cluster.clusters is {section.clusters}, but the sample has {len(sample)} rows ({place}): "
            "ask for fewer clusters or give more rows"
        )
    with job.timed("process"):
        start = kmeans.init_centroids(
            sample, section.clusters, job.manifest.runtime.seed, spherical=section.spherical
        )
    return kmeans.fit(
        lambda: _chunks(job),
        start,
        iterations=section.iterations,
        tolerance=section.tolerance,
        spherical=section.spherical,
    )


def _read(job: Job) -> Iterator[tuple[WorkUnit, RowBatch, Vectors]]:
    """The whole input. Its first vector settles how many numbers each must have, the same in each reading."""
    dimensions: int | None = None
    for unit in units_of(job, _INPUT):
        for batch in batches_of(job, _INPUT, unit):
            missing = lacking(job, batch, [_COLUMN]) if batch.num_rows else ()
            with errors_placed_in(batch):
                vectors = no_vectors(missing) if missing else vectors_of(batch, _COLUMN, dimensions)
            dimensions = dimensions or vectors.matrix.shape[1] or None
            yield unit, batch, vectors


def _chunks(job: Job) -> Iterator[Matrix]:
    for _, _, vectors in _read(job):
        if len(vectors.matrix):
            with job.timed("process"):  # the fit works while the generator stands here
                yield vectors.matrix


def _assign(job: Job, centroids: Matrix, *, spherical: bool) -> NDArray[np.int64]:
    """Write the assignments; the number of rows of each cluster."""
    work = AssignWork(centroids, spherical=spherical)
    depends = hashlib.sha256(centroids.tobytes()).hexdigest()
    units = units_of(job, _INPUT)
    records = run_units(job, "assign", job.plan.inputs[_INPUT], units, work, counted=False, depends=depends)
    sizes = np.zeros(len(centroids), np.int64)
    for each in spills_of(records, _SIZES):
        sizes += read_whole(each)["size"].to_numpy()
    return sizes


class AssignWork:
    """Give each vector of a unit its cluster, and count how many each cluster gets."""

    def __init__(self, centroids: Matrix, *, spherical: bool) -> None:
        self._centroids = centroids
        self._spherical = spherical

    def __call__(self, run: UnitRun) -> None:
        """Write the unit's file of "assignments", and the sizes of its part of the clusters."""
        sizes = np.zeros(len(self._centroids), np.int64)

        def write(item: tuple[pa.RecordBatch, NDArray[np.int64]]) -> None:
            rows, counts = item
            run.write("assignments", rows)
            np.add(sizes, counts, out=sizes)

        run.three_stages(self._assigned, write)
        run.write(_SIZES, pa.table({"size": sizes}))

    def _assigned(self, batch: RowBatch) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        vectors = vectors_of(batch, _COLUMN, self._centroids.shape[1])
        labels, distances = kmeans.assign(vectors.matrix, self._centroids, spherical=self._spherical)
        counts = np.bincount(labels, minlength=len(self._centroids))
        return _assignments(batch, vectors, labels, distances), counts


def _assignments(
    batch: RowBatch, vectors: Vectors, labels: NDArray[np.int32], distances: NDArray[np.float32]
) -> pa.RecordBatch:
    kept = [name for name in batch.rows.schema.names if name != _COLUMN]
    rows = batch.rows.select(kept).take(vectors.indices)
    columns = [*rows.columns, pa.array(labels, pa.int32()), pa.array(distances, pa.float32())]
    return pa.RecordBatch.from_arrays(columns, names=[*kept, *_MADE])


def _centroids_table(centroids: Matrix, sizes: NDArray[np.int64]) -> pa.Table:
    clusters = pa.array(range(len(centroids)), pa.int32())
    return pa.table({"cluster": clusters, "size": pa.array(sizes), "vector": vector_column(centroids)})


class _Sample:
    """At most `size` rows of a stream, those with the smallest draws, so that the batches do not matter."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._rng = np.random.default_rng(seed)
        self._draws = np.empty(0)
        self._parts: list[Matrix] = []

    def add(self, rows: Matrix) -> None:
        """Take the next rows of the stream; rows without any number count for nothing."""
        if rows.size:
            self._draws = np.concatenate([self._draws, self._rng.random(len(rows))])
            self._parts.append(rows)
        if len(self._draws) > 2 * self._size:
            self._thin()

    @property
    def rows(self) -> Matrix:
        """The sample so far, in the order of the stream."""
        self._thin()
        return self._parts[0] if self._parts else np.empty((0, 0), np.float32)

    def _thin(self) -> None:
        if len(self._draws):
            chosen = np.sort(np.argsort(self._draws, kind="stable")[: self._size])
            self._draws, self._parts = self._draws[chosen], [np.concatenate(self._parts)[chosen]]
