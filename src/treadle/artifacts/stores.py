"""The stores of this process, one for each prefix: opened, closed, and asked together."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.artifacts.memory_store import MemoryStore
from treadle.artifacts.prefix import find_prefix
from treadle.artifacts.record import RecordHead
from treadle.artifacts.store import Store
from treadle.storage.ledger import close_ledger

_STORES: dict[str, Store] = {}  # by their absolute prefix


def open_store(prefix: str) -> Store:
    """The store of that prefix: one for each process, shared by its threads."""
    store = _STORES.get(prefix)
    if store is None:
        located = find_prefix(prefix)
        kind = MemoryStore if located.startswith("memory://") else Store
        store = _STORES.setdefault(located, kind(located))
    return store


def close_store(prefix: str) -> None:
    """Let go of the store of that prefix, when nobody uses it any more; one in memory is gone then.

    Raises:
        LedgerError: as `Ledger.close`.
    """
    located = find_prefix(prefix)
    _STORES.pop(located, None)
    close_ledger(located)


def heads(outputs: Iterable[tuple[str, str]]) -> dict[str, tuple[int, RecordHead]]:
    """Output path -> number and head of its standing build, of outputs as (store, output path).

    Each store is asked once. Outputs without a build are left out.

    Raises:
        ArtifactError: a record cannot be read.
    """
    by_store: dict[str, list[str]] = {}
    for prefix, output_path in outputs:
        by_store.setdefault(prefix, []).append(output_path)
    found: dict[str, tuple[int, RecordHead]] = {}
    for prefix, paths in by_store.items():
        store = open_store(prefix)
        entries = store.ledger.latest(map(store.place, paths))
        found.update(
            (store.output_path(place), (entry.number, store.head(entry))) for place, entry in entries.items()
        )
    return found
