"""Near duplicates of texts: bands of MinHash signatures give candidates, the whole signatures confirm them.

Two texts are alike by the Jaccard index of their sets of word n-grams. MinHash (A. Broder, On the resemblance
and containment of documents, 1997) estimates it by the part of a signature that agrees; locality-sensitive
hashing by bands (J. Leskovec, A. Rajaraman, J. Ullman, Mining of Massive Datasets, chapter 3) finds the pairs
worth a look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treadle.domain.dedup import as_bytes, codes_of, first_of_each, normalized

Signatures = NDArray[np.uint32]
Places = NDArray[np.int64]
"""Places of rows in a table, from 0."""

_RECALL = 0.99
_PAIRS = 200_000


def shingles(text: str, ngram: int) -> list[str]:
    """The distinct runs of `ngram` words of the normalized text, in order; a shorter text is one run."""
    words = normalized(text).split()
    if len(words) <= ngram:
        return [" ".join(words)] if words else []
    return list(dict.fromkeys(" ".join(words[at : at + ngram]) for at in range(len(words) - ngram + 1)))


def signatures_of(texts: Iterable[str | None], permutations: int, ngram: int, seed: int) -> pa.Array[Any]:
    """The signature of each text, 4 bytes a permutation; null for one without any word.

    Needs the extra `dedup`.
    """
    import rensa  # type: ignore[import-untyped]

    sets = [shingles(each or "", ngram) for each in texts]
    matrix = rensa.RMinHash.digest_matrix_from_token_sets([each for each in sets if each], permutations, seed)
    found = iter(np.asarray(matrix.to_rows(), np.uint32).reshape(-1, permutations))
    width = pa.binary(4 * permutations)
    return pa.array([next(found).tobytes() if each else None for each in sets], width)


def choose_bands(permutations: int, threshold: float) -> tuple[int, int]:
    """Bands and rows of each: the longest bands that find a pair at `threshold` with probability 0.99.

    A pair of similarity s shares one of b bands of r rows with probability 1 - (1 - s^r)^b. Longer bands make
    fewer candidates; what is below the threshold is left out by their signatures anyway.
    """
    found = (permutations, 1)
    for rows in range(2, permutations + 1):
        bands = permutations // rows
        if 1 - (1 - threshold**rows) ** bands >= _RECALL:
            found = (bands, rows)
    return found


def estimated_jaccard(signatures: Signatures, left: Places, right: Places) -> NDArray[np.float64]:
    """For each pair of places the part of the signatures that agrees."""
    agree = np.empty(len(left), np.float64)
    for start in range(0, len(left), _PAIRS):
        some = slice(start, start + _PAIRS)
        agree[some] = (signatures[left[some]] == signatures[right[some]]).mean(axis=1)
    return agree


def group_similar(signatures: Signatures, threshold: float) -> Places:
    """For each signature (n, permutations) the first place of its group.

    Pairs whose estimated Jaccard index is `threshold` or more are in one group, and so is all that is linked
    to them. Memory: the signatures, and some 50 bytes for each of them.
    """
    parents = _same(signatures)
    bands, rows = choose_bands(signatures.shape[1], threshold)
    for band in range(bands):
        part = signatures[:, band * rows : (band + 1) * rows]
        for left, right in _candidates(part, parents):
            alike = estimated_jaccard(signatures, left, right) >= threshold
            _unite(parents, left[alike], right[alike])
    return _roots(parents, np.arange(len(parents)))


def _candidates(band: Signatures, parents: Places) -> Iterator[tuple[Places, Places]]:
    """Pairs that share the band and are not in one group yet; neighbours first, then ever farther apart."""
    runs = codes_of(as_bytes(band))
    order = np.argsort(runs, kind="stable")
    runs = runs[order]
    alive = np.arange(len(order))
    distance = 1
    while len(alive := alive[alive + distance < len(order)]):
        if distance & (distance - 1) == 0:  # now and then: what has become one group needs no further look
            alive = alive[_mixed_runs(runs, _roots(parents, order))[alive]]
        alive = alive[runs[alive] == runs[alive + distance]]
        left, right = order[alive], order[alive + distance]
        apart = _roots(parents, left) != _roots(parents, right)
        if apart.any():
            yield left[apart], right[apart]
        distance += 1


def _same(signatures: Signatures) -> Places:
    """For each place the first one with that very signature."""
    return first_of_each(as_bytes(signatures))


def _mixed_runs(runs: Places, roots: Places) -> NDArray[np.bool_]:
    """For each place in the order of runs: whether its run has more than one root."""
    starts = np.flatnonzero(np.diff(runs, prepend=-1))
    mixed = np.minimum.reduceat(roots, starts) != np.maximum.reduceat(roots, starts)
    return np.repeat(mixed, np.diff(starts, append=len(runs)))


def _unite(parents: Places, left: Places, right: Places) -> None:
    """The earlier place becomes the parent, so that a root is the first of its group."""
    for one, other in zip(left.tolist(), right.tolist(), strict=True):
        first, second = _root(parents, one), _root(parents, other)
        if first != second:
            parents[max(first, second)] = min(first, second)


def _root(parents: Places, place: int) -> int:
    while (parent := int(parents[place])) != place:
        parents[place] = parents[parent]
        place = parent
    return place


def _roots(parents: Places, places: Places) -> Places:
    found = parents[places]
    while not np.array_equal(found, further := parents[found]):
        found = further
    return found
