"""Stores for the length of a `with` block."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treadle.artifacts import Store, close_store, open_store


@contextmanager
def temporary_store() -> Iterator[Store]:
    """A fresh store in a temporary folder, which is gone when the block ends.

    Give its `prefix` to what should use it; neither the environment nor the settings are changed.
    """
    with tempfile.TemporaryDirectory(prefix="treadle-") as folder:
        store = open_store(str(Path(folder, "store").resolve()))
        try:
            yield store
        finally:
            close_store(store.prefix)


@contextmanager
def memory_store() -> Iterator[Store]:
    """A fresh store in the memory of this process, at a `memory://` URL, emptied when the block ends.

    Steps write into it as into an object store, through fsspec.
    """
    import fsspec  # here: it takes a tenth of a second to load, which a local store need not wait for

    store = open_store(f"memory://treadle-{uuid.uuid4().hex}")
    try:
        yield store
    finally:
        fs, root = fsspec.url_to_fs(store.prefix)
        if fs.find(root):
            fs.rm(root, recursive=True)
        close_store(store.prefix)
