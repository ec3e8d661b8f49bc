"""gc: find what nobody needs in a store, and remove it.

Finding changes nothing. Removing looks again at each thing just before, and may go on beside runs: the place
of an output is claimed first, as by a runner that builds it, so nobody builds it at that moment. What is
outside of the store is never touched, and no link is followed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Set

from treadle.artifacts import gc_local
from treadle.artifacts.gc_known import Garbage, GarbageKind, Known
from treadle.artifacts.prefix import is_url
from treadle.artifacts.store import Store
from treadle.artifacts.survey import Standing, standing_build
from treadle.errors import ArtifactError
from treadle.kernel import Unwind
from treadle.storage.ledger import Held

__all__ = ["Garbage", "GarbageKind", "find_garbage", "remove_garbage"]

_SHOWN = 10


def find_garbage(store: Store, keep: Set[str] | None = None) -> list[Garbage]:
    """What can be removed from the store, sorted by path; nothing is changed.

    That is what dead attempts and former builds have left, and output folders without a standing record. With
    `keep`, the output paths that are needed, every other output of the store is garbage too. Never what a
    living process is at work on, and never an output whose record cannot be read.

    Raises:
        LedgerError: the ledger as a whole cannot be read.
    """
    known = Known(store, keep)
    if is_url(store.prefix):
        from treadle.artifacts import gc_remote  # here: fsspec takes a tenth of a second to load

        left = gc_remote.find(store, known)
    else:
        left = gc_local.find(store, known)
    found = {each.path: each for each in (*left, *known.unwanted())}
    free = known.without_leases(found.values())
    return sorted(free, key=lambda each: each.path)


def remove_garbage(store: Store, garbage: Iterable[Garbage]) -> int:
    """Remove what was found, as far as it still is garbage; gives the bytes that were freed.

    Raises:
        ArtifactError: some of it could not be removed; all else was.
        LedgerError: the ledger cannot be written.
    """
    freed, failures = 0, []
    for each in garbage:
        try:
            freed += _remove(store, each)
        except OSError as error:
            failures.append(f"{each.path}: {error}")
    if failures:
        more = f"\n  and {len(failures) - _SHOWN} more" * (len(failures) > _SHOWN)
        listed = "\n  ".join(failures[:_SHOWN])
        raise ArtifactError(
            f"{store.prefix}: {len(failures)} things could not be removed, {freed:,} bytes were:"
            f"\n  {listed}{more}"
        )
    return freed


def _remove(store: Store, each: Garbage) -> int:
    if not each.path.startswith(f"{store.prefix}/"):
        raise ArtifactError(f"{each.path}: expected something inside of the store {store.prefix}")
    if each.kind in (GarbageKind.WORK, GarbageKind.ASIDE):
        return each.bytes * gc_local.remove_left(store.prefix, each)
    lost = threading.Event()
    claim = store.ledger.claim(each.place, lost.set, "gc")
    if isinstance(claim, Held):
        return 0
    with Unwind() as unwind:
        unwind.push(store.ledger.release, claim)
        if not _is_still(store, each, standing_build(store, each.place)) or lost.is_set():
            return 0
        if each.kind is GarbageKind.UNWANTED:  # first, so that at no time a record stands without its files
            store.forget(store.output_path(each.place))
        return each.bytes * _delete(store, each)


def _is_still(store: Store, each: Garbage, now: Standing | None) -> bool:
    """Whether what the ledger says now leaves it garbage."""
    if now is None:
        return each.kind is not GarbageKind.UNWANTED
    if now.head is None or each.kind is GarbageKind.UNRECORDED:
        return False
    if each.kind is GarbageKind.UNWANTED:
        return now.number == each.number
    return store.folder(store.output_path(each.place), now.head) != each.path


def _delete(store: Store, each: Garbage) -> bool:
    if not is_url(each.path):
        return gc_local.delete(store.prefix, each.path)
    from treadle.artifacts import gc_remote  # see above

    return gc_remote.delete(each.path)
