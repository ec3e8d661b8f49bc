from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from treadle.domain.kmeans import assign, fit, init_centroids, merge, partial_sums, update
from treadle.errors import ArgumentError

Matrix = NDArray[np.float32]


def points(n: int, d: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def blobs(k: int, each: int, d: int, *, spread: float) -> Matrix:
    rng = np.random.default_rng(k)
    middles = rng.standard_normal((k, d)) * 5
    return np.concatenate([m + rng.standard_normal((each, d)) * spread for m in middles]).astype(np.float32)


@given(st.lists(st.integers(0, 60), max_size=4), st.booleans(), st.integers(0, 99))
def test_partial_sums_equal_one_pass_whatever_the_chunks(cuts: list[int], spherical: bool, seed: int) -> None:
    """A shard more or a batch size less must not move the centroids."""
    rows = points(60, 5, seed)
    centroids = init_centroids(rows, 4, seed, spherical=spherical)
    whole = partial_sums(rows, centroids, spherical=spherical)
    parts = merge(partial_sums(part, centroids, spherical=spherical) for part in np.split(rows, sorted(cuts)))
    assert parts.sizes.tolist() == whole.sizes.tolist()
    assert parts.sums == pytest.approx(whole.sums, abs=1e-12)
    assert parts.inertia == pytest.approx(whole.inertia, rel=1e-6)
    assert parts.far_gaps == pytest.approx(whole.far_gaps, rel=1e-4, abs=1e-6)


def test_sums_sizes_and_inertia_are_those_of_the_definition() -> None:
    rows, centroids = points(50, 3), points(4, 3, 1)
    gaps = ((rows[:, None, :] - centroids) ** 2).sum(axis=2)
    labels = gaps.argmin(axis=1)
    found = partial_sums(rows, centroids, spherical=False)
    assert found.sizes.tolist() == np.bincount(labels, minlength=4).tolist()
    assert found.sums == pytest.approx(np.stack([rows[labels == c].sum(axis=0) for c in range(4)]), abs=1e-4)
    assert found.inertia == pytest.approx(gaps.min(axis=1).sum(), rel=1e-5)
    assert found.far_gaps == pytest.approx(np.sort(gaps.min(axis=1))[::-1][:4], rel=1e-4)
    got, distances = assign(rows, centroids, spherical=False)
    assert got.tolist() == labels.tolist()
    assert distances == pytest.approx(np.sqrt(gaps.min(axis=1)), rel=1e-4)
    assert got.dtype == np.int32
    assert distances.dtype == np.float32


def test_spherical_distance_is_one_minus_cosine() -> None:
    rows = np.array([[3, 0], [0, 0.5], [1, 1], [0, 0]], np.float32)
    centroids = np.array([[1, 0], [0, 1]], np.float32)
    labels, distances = assign(rows, centroids)
    assert labels[:3].tolist() == [0, 1, 0], "a tie goes to the lower cluster"
    assert distances[:3] == pytest.approx([0, 0, 1 - np.sqrt(0.5)], abs=1e-6)


@pytest.mark.parametrize("spherical", [True, False])
@pytest.mark.parametrize("rows", [blobs(8, 150, 6, spread=1.0), points(1500, 24)], ids=["blobs", "noise"])
def test_inertia_is_at_least_as_good_as_that_of_scikit_learn(rows: Matrix, *, spherical: bool) -> None:
    """Within 2 %, in the mean of five seeds.

    It knows no spherical k-means: there it gets unit rows, and its centroids are brought to length one.
    """
    cluster = pytest.importorskip("sklearn.cluster")
    if spherical:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    ours, theirs = [], []
    for seed in range(5):
        start = init_centroids(rows, 8, seed, spherical=spherical)
        ours.append(fit(lambda: np.array_split(rows, 3), start, spherical=spherical).inertia)
        model = cluster.KMeans(8, n_init=1, random_state=seed).fit(rows)
        theirs.append(
            partial_sums(
                rows, update_length(model.cluster_centers_, spherical=spherical), spherical=spherical
            ).inertia
        )
    assert np.mean(ours) <= 1.02 * np.mean(theirs)


def update_length(centers: Matrix, *, spherical: bool) -> Matrix:
    scale = np.linalg.norm(centers, axis=1, keepdims=True) if spherical else 1
    return (centers / scale).astype(np.float32)


@pytest.mark.parametrize("spherical", [True, False])
def test_inertia_never_rises(*, spherical: bool) -> None:
    rows = blobs(5, 80, 4, spread=3.0)
    centroids = init_centroids(rows, 7, 3, spherical=spherical)
    inertias = []
    for _ in range(20):
        sums = partial_sums(rows, centroids, spherical=spherical)
        inertias.append(sums.inertia)
        centroids, _ = update(centroids, sums, spherical=spherical)
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(inertias))


def test_the_seed_decides() -> None:
    rows = points(200, 6)
    first, again, other = (init_centroids(rows, 5, seed).tolist() for seed in (1, 1, 2))
    assert first == again != other
    found = fit(lambda: [rows], np.array(first, np.float32))
    assert found.converged
    assert found.centroids.tolist() == fit(lambda: [rows], np.array(first, np.float32)).centroids.tolist()
    assert np.linalg.norm(found.centroids, axis=1) == pytest.approx(np.ones(5), abs=1e-6)


def test_empty_clusters_start_anew_at_the_farthest_rows() -> None:
    """Otherwise a cluster that lost its rows stays empty, and the map has fewer topics than asked for."""
    rows = np.array([[0, 0], [0, 1], [9, 9], [-5, 0]], np.float32)
    centroids = np.array([[0, 0], [99, 99], [-99, 99]], np.float32)
    sums = partial_sums(rows, centroids, spherical=False)
    moved, shift = update(centroids, sums, spherical=False)
    assert moved[1:].tolist() == [[9, 9], [-5, 0]]
    assert shift > 0
    assert (fit(lambda: [rows], centroids, spherical=False).centroids[1:] == moved[1:]).all()


def test_what_cannot_be_clustered_is_refused() -> None:
    with pytest.raises(ArgumentError, match="from 1 to the 3 rows of the sample, got 4"):
        init_centroids(points(3, 2), 4, 0)
    with pytest.raises(ArgumentError, match="no chunk"):
        fit(list, points(2, 2))
    assert len(init_centroids(np.ones((6, 2), np.float32), 3, 0)) == 3, "equal rows are still rows"
