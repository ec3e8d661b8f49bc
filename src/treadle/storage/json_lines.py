"""Many lines of a jsonl file at once: what `json_line.parse_line` says of each, in a fraction of its time.

A fast parser reads each line, and a proof follows that the strict one would have read the same. The fast one
is lax in three ways: of a key that comes twice it keeps one value, an integer over 64 bits becomes a fraction
or stays, and any depth is taken. A line that is not proven, or refused, is judged by the strict parser.

The proof that no key comes twice: each key in the text is followed by a colon, before which stands a quote or
white space. When a text has no more such colons than its objects have keys, no key was lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from treadle.storage.grid import Cells, Grid, Row, grid_of
from treadle.storage.json_line import MAX_DEPTH, BadLineError, parse_line

Bytes = npt.NDArray[np.uint8]

_LIMIT = 2**63
_GROUP_BYTES = 64 * 2**10  # lines are looked at together up to about this much text, which stays in the cache
_NESTED = (dict, list)
_DOUBTFUL = 2**40
"""More keys than any text has colons."""

_QUOTE, _SPACE, _COLON, _BACKSLASH = b'" :\\'


@dataclass(frozen=True)
class Parsed:
    """The objects on some lines, the index of the line of each, and why other lines are not rows.

    A blank line is neither. `grid` has the cells of the rows.
    """

    rows: list[Row]
    places: Sequence[int]
    flaws: dict[int, BadLineError]
    grid: Grid


def parse_lines(raws: Sequence[bytes]) -> Parsed:
    """Judge lines, with their line breaks or without them."""
    try:
        rows = list(map(orjson.loads, raws))
    except orjson.JSONDecodeError:
        return _proven(raws, *_one_by_one(raws))
    if set(map(type, rows)) <= {dict}:
        return _proven(raws, rows, range(len(rows)), {})
    return _proven(raws, *_one_by_one(raws))


def _one_by_one(raws: Sequence[bytes]) -> tuple[list[Row], Sequence[int], dict[int, BadLineError]]:
    rows: list[Row] = []
    places: list[int] = []
    flaws: dict[int, BadLineError] = {}
    for index, raw in enumerate(raws):
        row = _quickly(raw)
        if row is None and raw.strip():
            row = _strictly(raw, index, flaws)
        if row is not None:
            rows.append(row)
            places.append(index)
    return rows, places, flaws


def _quickly(raw: bytes) -> Row | None:
    try:
        row = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return row if type(row) is dict else None


def _strictly(raw: bytes, index: int, flaws: dict[int, BadLineError]) -> Row | None:
    try:
        return parse_line(raw.removesuffix(b"\n"))
    except BadLineError as error:
        flaws[index] = error
        return None


def _proven(
    raws: Sequence[bytes], rows: list[Row], places: Sequence[int], flaws: dict[int, BadLineError]
) -> Parsed:
    grid = grid_of(rows)
    texts = raws if len(places) == len(raws) else [raws[at] for at in places]
    doubtful = set(_doubtful(texts, rows, grid))
    if not doubtful:
        return Parsed(rows, places, flaws, grid)
    judged = [
        _strictly(texts[index], places[index], flaws) if index in doubtful else row
        for index, row in enumerate(rows)
    ]
    places = [at for at, row in zip(places, judged, strict=True) if row is not None]
    kept = [row for row in judged if row is not None]
    return Parsed(kept, places, flaws, grid_of(kept))


def _doubtful(texts: Sequence[bytes], rows: Sequence[Row], grid: Grid) -> Iterator[int]:
    """The indices of the rows that are not proven; some may come twice."""
    if _plain_together(texts, rows, grid):
        return
    keys = list(map(len, rows))
    for cells in grid.cells.values():
        yield from _large(cells)
        if not cells.kinds.isdisjoint(_NESTED):
            for index, value in zip(cells.at, cells.values, strict=True):
                if type(value) in _NESTED:
                    keys[index] += _keys_in(value, 2)
    for group in _groups(texts):
        for index in _with_more_colons(texts[group], np.minimum(keys[group], _DOUBTFUL)):
            yield group.start + int(index)


def _plain_together(texts: Sequence[bytes], rows: Sequence[Row], grid: Grid) -> bool:
    """Whether all rows are proven at once; where nothing is nested, the look at each is as quick."""
    if all(cells.kinds.isdisjoint(_NESTED) for cells in grid.cells.values()):
        return False
    keys = sum(map(len, rows)) + sum(_keys_within(cells, 1) for cells in grid.cells.values())
    if keys >= _DOUBTFUL:
        return False
    groups = [texts[group] for group in _groups(texts)]
    return keys == sum(int(np.count_nonzero(_before_colons(each))) for each in groups) or keys == sum(
        len(_key_ends(each)) for each in groups
    )


def _groups(texts: Sequence[bytes]) -> Iterator[slice]:
    step = 1 + _GROUP_BYTES * len(texts) // (1 + sum(map(len, texts)))
    for first in range(0, len(texts), step):
        yield slice(first, first + step)


def _large(cells: Cells) -> Iterator[int]:
    if not _all_small(cells.values, cells.kinds):
        for index, value in zip(cells.at, cells.values, strict=True):
            if not _all_small([value], {type(value)}):
                yield index


def _all_small(values: Collection[Any], kinds: set[type]) -> bool:
    """Whether no number is so large that an integer may have become a fraction, or does not fit 64 bits."""
    if kinds.isdisjoint((int, float)):
        return True
    if not kinds <= {int, float}:
        values = [value for value in values if type(value) in (int, float)]
    return bool(max(values) < _LIMIT and min(values) > -_LIMIT)


def _keys_within(cells: Cells, depth: int) -> int:
    """How many keys the objects in cells have, which are that deep; _DOUBTFUL or more if not all is plain."""
    if not _all_small(cells.values, cells.kinds):
        return _DOUBTFUL
    if cells.kinds.isdisjoint(_NESTED):
        return 0
    if depth >= MAX_DEPTH:
        return _DOUBTFUL
    fields = cells.fields.cells.values()
    inside = (cells.items, *fields)
    return sum(len(each.values) for each in fields) + sum(_keys_within(each, depth + 1) for each in inside)


def _keys_in(value: Any, depth: int) -> int:
    """How many keys the objects have in a value, which is at that depth; _DOUBTFUL for what is not plain."""
    found = len(value) if type(value) is dict else 0
    inner = value.values() if type(value) is dict else value
    kinds = set(map(type, inner))
    if not _all_small(inner, kinds):
        return _DOUBTFUL
    if kinds.isdisjoint(_NESTED):
        return found
    if depth >= MAX_DEPTH:
        return _DOUBTFUL
    return min(_DOUBTFUL, found + sum(_keys_in(each, depth + 1) for each in inner if type(each) in _NESTED))


def _with_more_colons(texts: Sequence[bytes], keys: npt.NDArray[np.int64]) -> list[int]:
    """The indices of the texts that may have more keys than were counted. A text here is always an object."""
    if np.count_nonzero(_before_colons(texts)) == keys.sum():
        return []
    at = _key_ends(texts)
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    until = np.searchsorted(at, ends)
    return list(np.flatnonzero(np.diff(until, prepend=0) != keys))


def _key_ends(texts: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Where in the joined texts there are colons after what may be a key: at all keys, and at little else."""
    data = np.frombuffer(b"".join(texts), np.uint8)
    at = np.flatnonzero(_before_colons(texts)) + 1
    return at[_may_end_key(data[at - 1], data[at - 2], data[at - 3])]


def _before_colons(texts: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    """Where in the joined texts a byte comes before a colon that may be the end of a key or white space."""
    data = np.frombuffer(b"".join(texts), np.uint8)
    mask: npt.NDArray[np.bool_] = (data[1:] == _COLON) & (data[:-1] <= _QUOTE)
    return mask


def _may_end_key(last: Bytes, second: Bytes, third: Bytes) -> npt.NDArray[np.bool_]:
    """By the three bytes before a colon, last one first. A quote after exactly one backslash ends nothing."""
    escaped = (second == _BACKSLASH) & (third != _BACKSLASH)
    ends: npt.NDArray[np.bool_] = ((last == _QUOTE) & ~escaped) | ((last <= _SPACE) & (second <= _QUOTE))
    return ends
