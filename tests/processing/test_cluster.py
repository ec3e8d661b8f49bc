"""Run type `cluster`: streamed fit, chunked assignment, and rows that have no usable vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from treadle.errors import ManifestError, RunError
from treadle.processing.patterns.cluster import _Sample

BODY = """
    run: {type: cluster}
    inputs: {vectors: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    cluster: {clusters: 3, spherical: false, tolerance: 0}
    outputs:
      centroids: {backend: parquet, path: centroids}
      assignments: {backend: parquet, path: assignments}
    parallelism: {batch_rows: 8}
    runtime: {seed: 1, metrics_enabled: true}
"""
CENTERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


def blobs(workshop: Any, files: int = 3, rows: int = 20) -> np.ndarray[Any, Any]:
    """Three heaps far apart; the label of each row, in the order of files."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=(files, rows))
    for number in range(files):
        points = CENTERS[labels[number]] + rng.normal(0, 0.1, (rows, 2))
        workshop.rows(
            f"{number}",
            [
                {"id": f"{number}-{row}", "vector": list(map(float, point))}
                for row, point in enumerate(points)
            ],
        )
    return labels.reshape(-1)


def test_it_finds_the_heaps(workshop: Any) -> None:
    labels = blobs(workshop)
    outcome = workshop.run(BODY)
    rows = workshop.read("assignments")
    assert [row["id"] for row in rows] == [f"{number}-{row}" for number in range(3) for row in range(20)]
    centroids = {row["cluster"]: row for row in workshop.read("centroids")}
    assert sorted(centroids) == [0, 1, 2]
    for row, label in zip(rows, labels, strict=True):
        np.testing.assert_allclose(centroids[row["cluster"]]["vector"], CENTERS[label], atol=0.2)
        assert row["distance"] < 0.6
    assert sum(each["size"] for each in centroids.values()) == 60
    assert outcome.counters.rows_out == 60
    assert outcome.counters.extra["converged"] == 1
    assert set(rows[0]) == {"id", "cluster", "distance"}
    done = [each for each in workshop.sink.events if hasattr(each, "unit")]
    assert [each.counters["rows_in"] for each in done] == [20, 20, 20, 0, 0, 0], "read once for the account"
    assert [each.phase for each in done] == ["main"] * 3 + ["assign"] * 3
    assert set(outcome.metrics.stage_seconds) == {"read", "process", "write"}


def test_the_centroids_are_the_means_of_their_rows(workshop: Any) -> None:
    """The fixed point of k-means, over chunks and files."""
    blobs(workshop)
    workshop.run(BODY)
    vectors = np.array([row["vector"] for row in read_inputs(workshop)])
    clusters = np.array([row["cluster"] for row in workshop.read("assignments")])
    for row in workshop.read("centroids"):
        np.testing.assert_allclose(
            row["vector"], vectors[clusters == row["cluster"]].mean(axis=0), rtol=1e-4, atol=1e-5
        )


def read_inputs(workshop: Any) -> list[dict[str, Any]]:
    return workshop.read("*.jsonl", "jsonl", out=workshop.root / "in")  # type: ignore[no-any-return]


def test_unusable_vectors_are_rejected_with_their_lines(workshop: Any) -> None:
    """Neither may they poison the means nor may they vanish."""
    good = [{"id": number, "vector": [float(number), 0.0]} for number in range(4)]
    bad = [
        {"id": 90, "vector": None},
        {"id": 91, "vector": [1.0]},
        {"id": 92, "vector": [1.0, None]},
        {"id": 93, "vector": [1e300, 1.0]},
        {"id": 94, "vector": []},
    ]
    path = workshop.rows("a", [bad[0], *good, *bad[1:], "torn"])
    outcome = workshop.run(BODY + "    errors: {on_bad_row: quarantine}\n")
    assert (outcome.counters.rows_in, outcome.counters.rows_out, outcome.counters.rejected) == (10, 4, 6)
    assert [row["id"] for row in workshop.read("assignments")] == [0, 1, 2, 3]
    found = workshop.quarantined()
    assert [each["line"] for each in found] == [1, 6, 7, 8, 9, 10]
    assert {each["source"] for each in found} == {str(path)}
    assert [each["reason"] for each in found[:5]] == [
        "vector is null",
        "vector has 1 numbers, expected 2",
        "vector holds a number that is null, not finite or too large",
        "vector holds a number that is null, not finite or too large",
        "vector is empty",
    ]


def test_fewer_rows_than_clusters(workshop: Any) -> None:
    workshop.rows("a", [{"vector": [1.0, 2.0]}] * 2)
    with pytest.raises(RunError, match=r"cluster.clusters is 3, but the sample has 2 rows"):
        workshop.run(BODY)
    workshop.rows("a", [])
    with pytest.raises(RunError, match=r"cluster.clusters is 3, but the sample has 0 rows"):
        workshop.run(BODY)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"point": [1.0]}, "expected a column 'vector', found the columns point"),
        ({"vector": "1 2"}, r"a\.jsonl:1: column 'vector' is string, expected lists of numbers"),
        ({"vector": [1.0], "cluster": 4}, "has the column 'cluster', which this run makes"),
    ],
)
def test_columns_that_are_in_the_way(workshop: Any, row: object, said: str) -> None:
    workshop.rows("a", [row] * 5)
    with pytest.raises(RunError, match=said):
        workshop.run(BODY)
    assert workshop.visible() == []


@pytest.mark.parametrize("backend", ["inprocess", "processes"])
def test_a_unit_whose_vectors_are_none_is_bad_row_by_row(workshop: Any, backend: str) -> None:
    """One file of another make must not cost the others."""
    workshop.rows("a", [{"vector": [each, 1.0]} for each in (0.0, 5.0, 9.0)])
    path = workshop.rows("b", [{"vector": "1 2"}, {"vector": None}])
    workshop.rows("c", [{"vector": ["1", "2"]}])
    body = BODY.replace("{batch_rows: 8}", f"{{batch_rows: 8, backend: {backend}, workers: 1}}")
    outcome = workshop.run(body + "    errors: {on_bad_row: quarantine}\n")
    assert (outcome.counters.rows_out, outcome.counters.rejected) == (3, 3)
    assert len(workshop.read("assignments")) == 3
    first, second, third = workshop.quarantined()
    assert (first["source"], first["line"], first["kind"]) == (str(path), 1, "wrong-type")
    assert first["reason"] == "column 'vector' is string, expected lists of numbers"
    assert second["reason"] == "vector is null"
    assert third["reason"].startswith("column 'vector' is list<")


def test_what_is_missing_is_placed(workshop: Any) -> None:
    with pytest.raises(ManifestError, match="cluster: expected the section cluster, which cluster needs"):
        workshop.run(BODY.replace("    cluster: {", "    #"))
    with pytest.raises(ManifestError, match=r"outputs\.centroids: expected a dataset"):
        workshop.run(BODY.replace("centroids: {", "centers: {"))


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_a_sample_does_not_depend_on_the_batches(chunk: int) -> None:
    """Else the first centroids, and with them everything, would change with `batch_rows`."""
    rows = np.arange(100, dtype=np.float32).reshape(-1, 1)
    whole, parts = _Sample(10, 3), _Sample(10, 3)
    whole.add(rows)
    for start in range(0, 100, chunk):
        parts.add(rows[start : start + chunk])
    np.testing.assert_array_equal(whole.rows, parts.rows)
    assert whole.rows.shape == (10, 1)
    assert (np.diff(whole.rows[:, 0]) > 0).all(), "in the order of the stream"


def test_a_sample_is_even() -> None:
    """Every row has the same chance, the first and the last."""
    hits = np.zeros(20)
    for seed in range(400):
        sample = _Sample(5, seed)
        for row in range(20):
            sample.add(np.array([[row]], np.float32))
        hits[sample.rows[:, 0].astype(int)] += 1
    assert hits.sum() == 2000
    assert (np.abs(hits - 100) < 50).all()


def test_vectors_that_cannot_be_measured_are_rejected(workshop: Any) -> None:
    """Their squared length is beyond float32: they would become zero, or all distances NaN."""
    workshop.rows("a", [{"vector": each} for each in ([1, 0], [1e25, 1], [0, 1], [1e300, 0], [1, 1])])
    outcome = workshop.run(BODY + "    errors: {on_bad_row: quarantine}\n")
    assert (outcome.counters.rows_out, outcome.counters.rejected) == (3, 2)
    assert [each["line"] for each in workshop.quarantined()] == [2, 4]
    assert "too large" in workshop.quarantined()[0]["reason"]


def test_large_whole_numbers_are_rounded_as_fractions_are(workshop: Any) -> None:
    workshop.rows("a", [{"vector": each} for each in ([2**40 + 1, 1], [1, 2**40 + 1], [1, 1])])
    assert workshop.run(BODY).counters.rows_out == 3
