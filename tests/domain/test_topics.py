import builtins
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from treadle.domain.projection import project
from treadle.domain.topics import (
    class_terms,
    count_cluster_terms,
    representatives,
    singular,
    topics_over_time,
)
from treadle.errors import ArgumentError, MissingExtraError


def test_terms_are_counted_by_cluster() -> None:
    table = count_cluster_terms(np.array([1, 0, 1]), [["b", "a"], ["a"], ["b"]])
    assert table.to_pydict() == {"cluster": [0, 1, 1], "term": ["a", "a", "b"], "count": [1, 1, 2]}
    assert count_cluster_terms([], []).schema == table.schema


def test_a_cluster_is_told_by_what_it_says_more_than_others() -> None:
    """Words common everywhere lead a plain count; stopwords and numbers tell nothing."""
    gold = ["government"] * 9 + ["gold"] * 6 + ["silver"] * 3 + ["the"] * 50 + ["1842"] * 20 + ["u.s"] * 9
    war = ["government"] * 9 + ["war"] * 5 + ["ii"] * 9
    terms = class_terms(count_cluster_terms([0, 1], [gold, war]), top=3)
    assert [each.term for each in terms[0]] == ["gold", "silver", "government"]
    assert terms[1][0][::2] == ("war", 5)
    share = 6 / 18
    assert terms[0][0].score == pytest.approx(np.sqrt(share) * np.log(share * 32 / 6))


def test_plural_and_singular_are_one_term_in_the_commonest_form() -> None:
    table = count_cluster_terms([0, 1], [["duty", "duties", "duties", "tariff"], ["duty", "bank", "bank"]])
    terms = class_terms(table)
    found = [{each.term: each.occurrences for each in terms[cluster]} for cluster in (0, 1)]
    assert found == [{"duties": 3, "tariff": 1}, {"bank": 2, "duties": 1}]


def test_a_cluster_without_a_telling_word_is_still_there() -> None:
    assert class_terms(count_cluster_terms([0, 1], [["the"], ["war"]]))[0] == ()


@pytest.mark.parametrize(
    ("plural", "stem"),
    [
        ("duties", "duty"),
        ("acts", "act"),
        ("taxes", "taxe"),
        ("congress", "congress"),
        ("status", "status"),
        ("prices", "price"),
    ],
)
def test_the_s_stemmer(plural: str, stem: str) -> None:
    assert singular(plural) == stem


def test_representatives_are_the_nearest_of_different_documents() -> None:
    labels = np.array([0, 0, 0, 1, 0], np.int32)
    distances = np.array([0.3, 0.1, 0.2, 0.9, 0.1], np.float32)
    keys = ["x", "y", "y", "x", "z"]
    assert representatives(labels, distances, keys, count=2) == {0: (1, 4), 1: (3,)}
    assert representatives(labels, distances, keys)[0] == (1, 4, 0)


def test_every_span_has_every_cluster_and_shares_of_one() -> None:
    labels, years = np.array([2, 2, 0, 2], np.int32), np.array([1799, 1790, 1791, 2021])
    table = topics_over_time(labels, years)
    assert table.to_pydict() == {
        "start": [1790, 1790, 2020, 2020],
        "cluster": [0, 2, 0, 2],
        "passages": [1, 2, 0, 1],
        "share": [pytest.approx(1 / 3), pytest.approx(2 / 3), 0, 1],
    }
    assert table.schema.field("cluster").type == pa.int32()
    with pytest.raises(ArgumentError, match="at least 1 year"):
        topics_over_time(labels, years, bucket=0)


def test_the_map_keeps_neighbours_and_is_the_same_each_time() -> None:
    pytest.importorskip("sklearn")
    noise = np.random.default_rng(0).standard_normal((40, 8)) / 20
    rows = (np.repeat(np.eye(2, 8), 20, axis=0) + noise).astype(np.float32)
    places = project(rows, seed=3)
    assert places.shape == (40, 2)
    assert places.dtype == np.float32
    assert places.tolist() == project(rows, seed=3).tolist()
    between = np.linalg.norm(places[:20].mean(axis=0) - places[20:].mean(axis=0))
    assert between > 2 * max(places[:20].std(), places[20:].std())
    with pytest.raises(ArgumentError, match="at least 5 rows, got 2"):
        project(rows[:2])


def test_without_scikit_learn_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: object) -> object:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "sklearn.manifold", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'treadle\[demo\]'"):
        project(np.zeros((9, 2), np.float32))


def test_a_map_is_drawn_beside_a_step_that_loads_torch() -> None:
    """scikit-learn takes half a torch, which another thread is loading, for a whole one, and fails."""
    code = (
        "import sys, numpy, treadle.domain.projection as it\n"
        "it.project(numpy.eye(8, 4, dtype=numpy.float32))\n"
        "print(sys.modules['torch'].Tensor.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Tensor\n"), done.stderr
