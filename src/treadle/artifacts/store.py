"""The store: what is known of the steps of one prefix, and where their files are.

It brings together the ledger (which builds there are) and the workplace (where bodies write), and speaks of
output paths and records where the ledger speaks of places and texts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from treadle.artifacts.artifact import Artifact
from treadle.artifacts.fingerprint import Json
from treadle.artifacts.prefix import find_prefix, join
from treadle.artifacts.record import (
    Record,
    RecordBody,
    RecordHead,
    read_head,
    read_record,
    write_body,
    write_head,
)
from treadle.artifacts.value import decode_value
from treadle.artifacts.workplace import WorkFolder, open_workplace
from treadle.errors import ArtifactError
from treadle.storage.ledger import AttemptNote, Claim, Entry, open_ledger

_VALUES = 4_096
_SMALL = 1_000


def open_store(prefix: str) -> Store:
    """The store of that prefix: one for each process, shared by its threads."""
    store = _STORES.get(prefix)
    if store is None:
        located = find_prefix(prefix)
        kind = MemoryStore if located.startswith("memory://") else Store
        store = _STORES.setdefault(located, kind(located))
    return store


class Store:
    """What is known of the steps below `prefix`, and of those that were given places of their own."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.ledger = open_ledger(prefix)
        self.workplace = open_workplace(prefix)
        self._inside = f"{prefix}/"
        # What dependents are about to ask for; the texts of a few thousand small values.
        self._values: OrderedDict[str, tuple[str, Json, str]] = OrderedDict()

    def place(self, output_path: str) -> str:
        """What the ledger calls it: relative to the store when it is inside."""
        return output_path.removeprefix(self._inside)

    def output_path(self, place: str) -> str:
        """The reverse of `place`."""
        return join(self.prefix, place)

    def head(self, entry: Entry) -> RecordHead:
        """What an entry of the ledger says; see `read_head`."""
        return read_head(self.ledger.url, entry)

    def records(self, place: str) -> list[Record]:
        """Every build of that place, the oldest first."""
        return [self._read(entry) for entry in self.ledger.builds(place)]

    def record(self, output_path: str) -> Record | None:
        """The standing record of that output, or None.

        Raises:
            ArtifactError: there is one that cannot be read.
        """
        place = self.place(output_path)
        entry = self.ledger.latest([place]).get(place)
        if entry is None:
            return None
        body = entry.body or self.ledger.body(place, entry.number)
        return self._read(Entry(place, entry.number, entry.head, body))

    def folder(self, output_path: str, head: RecordHead) -> str:
        """Where the files of that build are."""
        return join(output_path, head.location)

    def files_stand(self, output_path: str, head: RecordHead) -> bool:
        """Whether all files of the build are there with their sizes."""
        return not head.files or self.workplace.stand(self.folder(output_path, head), head.files)

    def load_value(self, output_path: str) -> Any:
        """What the step of that output returned, or its `Artifact` when that was None.

        Raises:
            ArtifactError: there is no record, or it cannot be read.
        """
        kept = self._values.get(output_path) or self._recorded(output_path)
        _, tree, folder = kept
        try:
            value = decode_value(tree, folder)
        except ArtifactError as error:
            raise ArtifactError(f"{output_path}: {error}") from error
        return Artifact(folder) if value is None else value

    def commit(
        self,
        claim: Claim,
        output_path: str,
        head: RecordHead,
        body: RecordBody,
        note: AttemptNote,
        work: WorkFolder,
    ) -> None:
        """Make what is in `work`, with what `head` and `body` say of it, the build that stands.

        Raises:
            LeaseLostError: another owner took over; nothing has changed.
        """
        self._values.pop(output_path, None)
        self.ledger.commit(claim, *self._texts(claim, head, body), note, work.publish)
        self._remember(output_path, head, body)

    def forget(self, output_path: str) -> None:
        """The build of that output does not stand any more."""
        self._values.pop(output_path, None)
        self.ledger.withdraw(self.place(output_path))

    def refresh(self) -> None:
        """Look again: the store may have been removed, or another process may have built some of it anew."""
        self.ledger = open_ledger(self.prefix)
        self._values.clear()

    def _texts(self, claim: Claim, head: RecordHead, body: RecordBody) -> tuple[str, str]:  # noqa: ARG002
        return write_head(head), write_body(body)

    def _read(self, entry: Entry) -> Record:
        return read_record(self.ledger.url, entry)

    def _recorded(self, output_path: str) -> tuple[str, Json, str]:
        record = self.record(output_path)
        if record is None:
            raise missing_record(output_path)
        return self._remember(output_path, record.head, record.body)

    def _remember(self, output_path: str, head: RecordHead, body: RecordBody) -> tuple[str, Json, str]:
        kept = (head.build, body.value, self.folder(output_path, head))
        if len(str(body.value)) < _SMALL:
            self._values[output_path] = kept
            if len(self._values) > _VALUES:
                self._values.popitem(last=False)
        return kept


class MemoryStore(Store):
    """A store that ends with its process: records are kept as they are, and never written as text."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self._records: dict[tuple[str, int], Record] = {}

    def _texts(self, claim: Claim, head: RecordHead, body: RecordBody) -> tuple[str, str]:
        self._records[claim.place, claim.number] = Record(claim.number, head, body)
        return "", ""

    def _read(self, entry: Entry) -> Record:
        return self._records[entry.place, entry.number]

    def head(self, entry: Entry) -> RecordHead:
        """See `Store`."""
        return self._read(entry).head


def missing_record(output_path: str) -> ArtifactError:
    """The error when what was done has vanished in between."""
    return ArtifactError(
        f"{output_path}: the step was done, and its record is gone; run again to build it anew"
    )


_STORES: dict[str, Store] = {}  # by their absolute prefix


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
