"""A file of lines cut into ranges of bytes."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.storage.compression import codec_of
from treadle.storage.dataset import Dataset, WorkUnit
from treadle.storage.formats.format import Part


def split_bytes(dataset: Dataset, unit: WorkUnit) -> Sequence[Part]:
    """Ranges of `dataset.split_bytes` bytes; a line belongs to the part in which it begins.

    A compressed file stays whole, since only its beginning can be found in it.
    """
    size = dataset.split_bytes
    if size is None or codec_of(unit.source) != "none":
        return ()
    ends = ((first, min(first + size, unit.bytes)) for first in range(0, unit.bytes, size))
    return tuple(Part(first, end, end - first) for first, end in ends)
