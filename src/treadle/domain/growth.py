"""How a vocabulary grows with the corpus: tokens, types and hapax legomena group by group, and Heaps' law."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from treadle.domain.reduce import SumFold
from treadle.errors import ArgumentError

Integers = NDArray[np.int64]


class HeapsFit(NamedTuple):
    """types = k * tokens ** beta"""

    k: float
    beta: float


def growth_curve(table: pa.Table, *, group: str = "group") -> pa.Table:
    """Counts after each group, groups in ascending order (years, shards).

    Takes columns term, `group`, count; a term may have any number of rows, and a count of 0 is no occurrence.
    Gives columns `group`, tokens, types, hapax, all int64 and cumulative; a hapax is a term seen once so far.
    """
    fold = SumFold((group, "term"), ("count",))
    fold.add(table)
    sums = fold.result()
    occurrences = sums.filter(pc.greater(sums["count"], pa.scalar(0)))
    groups = pc.unique(occurrences[group])
    when = pc.index_in(occurrences[group], value_set=groups).to_numpy()
    tokens, types, hapax = _gains(
        when, _codes(occurrences["term"]), occurrences["count"].to_numpy(), len(groups)
    )
    return pa.table(
        {group: groups, "tokens": pa.array(tokens), "types": pa.array(types), "hapax": pa.array(hapax)}
    )


def _codes(terms: pa.ChunkedArray[Any]) -> Integers:
    codes: Integers = terms.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def _gains(
    when: Integers, term: Integers, count: Integers, groups: int
) -> tuple[Integers, Integers, Integers]:
    """Cumulative tokens, types and hapax by group; rows are in the order of groups, one for a term and group.

    A term's first row makes it a type, and a hapax when its count is 1; its second row ends that.
    """
    order = np.lexsort((when, term))
    first = np.diff(term[order], prepend=-1) != 0
    second = ~first & np.roll(first, 1)
    once = first & (count[order] == 1)
    ended = second & np.roll(once, 1)

    def gained(rows: NDArray[np.bool_]) -> Integers:
        return np.bincount(when[order][rows], minlength=groups).astype(np.int64)

    tokens = np.zeros(groups, np.int64)
    np.add.at(tokens, when, count)
    return np.cumsum(tokens), np.cumsum(gained(first)), np.cumsum(gained(once) - gained(ended))


def heaps_fit(tokens: ArrayLike, types: ArrayLike) -> HeapsFit:
    """Heaps' law (Heaps 1978) by least squares of log types on log tokens.

    Raises ArgumentError for fewer than two points, or points that are not above zero.
    """
    x = np.log(np.asarray(tokens, dtype=np.float64))
    y = np.log(np.asarray(types, dtype=np.float64))
    if len(x) < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ArgumentError(f"heaps_fit needs two or more points above zero, got {len(x)}")
    beta, log_k = np.polyfit(x, y, 1)
    return HeapsFit(float(np.exp(log_k)), float(beta))
