"""The store: what is known of the steps of one prefix, and where their files are.

It brings together the ledger (which builds there are) and the workplace (where bodies write), and speaks of
output paths and records where the ledger speaks of places and texts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

from treadle.artifacts.artifact import Artifact
from treadle.artifacts.json_form import Json
from treadle.artifacts.prefix import join
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
from treadle.artifacts.waits import read_wait
from treadle.artifacts.workplace import WorkFolder, open_workplace
from treadle.errors import ArtifactError
from treadle.storage.ledger import AttemptNote, Claim, Entry, Owner, open_ledger

_VALUES = 4_096
_SMALL = 1_000


class _Kept(NamedTuple):
    """The value of a build as `encode_value` gave it, and the folder of its files."""

    tree: Json
    folder: str


class Store:
    """What is known of the steps below `prefix`, and of those that were given places of their own."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.ledger = open_ledger(prefix)
        self.workplace = open_workplace(prefix)
        self._inside = f"{prefix}/"
        # What dependents are about to ask for; the texts of a few thousand small values.
        self._values: OrderedDict[str, _Kept] = OrderedDict()

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
        return self._read(entry._replace(body=self.ledger.body(place, entry.number)))

    def leases(self) -> Iterator[tuple[str, Owner]]:
        """Every place that somebody is at work on, and its owner, dead or alive."""
        return ((place, owner) for place, owner in self.ledger.leases() if read_wait(place) is None)

    def folder(self, output_path: str, head: RecordHead) -> str:
        """Where the files of that build are."""
        return join(output_path, head.location)

    def is_adopted(self, output_path: str, head: RecordHead) -> bool:
        """Whether the files lie where they were before the step, and are none of the store's."""
        folder = self.folder(output_path, head)
        return folder != output_path and not folder.startswith(f"{output_path}/")

    def files_stand(self, output_path: str, head: RecordHead) -> bool:
        """Whether all files of the build are there with their sizes."""
        return not head.files or self.workplace.stand(self.folder(output_path, head), head.files)

    def load_value(self, output_path: str) -> Any:
        """What the step of that output returned, or its `Artifact` when that was None.

        Raises:
            ArtifactError: there is no record, or it cannot be read.
        """
        kept = self._values.get(output_path) or self._recorded(output_path)
        try:
            value = decode_value(kept.tree, kept.folder, self.prefix)
        except ArtifactError as error:
            raise ArtifactError(f"{output_path}: {error}") from error
        return Artifact(kept.folder) if value is None else value

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
        """The build of that output does not stand any more; its files and the history stay."""
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

    def _recorded(self, output_path: str) -> _Kept:
        record = self.record(output_path)
        if record is None:
            raise missing_record(output_path)
        return self._remember(output_path, record.head, record.body)

    def _remember(self, output_path: str, head: RecordHead, body: RecordBody) -> _Kept:
        kept = _Kept(body.value, self.folder(output_path, head))
        if len(str(body.value)) < _SMALL:
            self._values[output_path] = kept
            if len(self._values) > _VALUES:
                self._values.popitem(last=False)
        return kept


def missing_record(output_path: str) -> ArtifactError:
    """The error when what was done has vanished in between."""
    return ArtifactError(
        f"{output_path}: the step was done, and its record is gone; run again to build it anew"
    )
