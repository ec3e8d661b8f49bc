"""A store in the memory of one process: its records are kept as they are, and never written as text."""

from __future__ import annotations

from treadle.artifacts.record import Record, RecordBody, RecordHead
from treadle.artifacts.store import Store, missing_record
from treadle.storage.ledger import Claim, Entry


class MemoryStore(Store):
    """See `Store`. It ends with its process, or when it is closed."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self._records: dict[tuple[str, int], Record] = {}

    def _texts(self, claim: Claim, head: RecordHead, body: RecordBody) -> tuple[str, str]:
        self._records[claim.place, claim.number] = Record(claim.number, head, body)
        return "", ""

    def head(self, entry: Entry) -> RecordHead:
        """See `Store`."""
        return self._read(entry).head

    def forget(self, output_path: str) -> None:
        """See `Store`. There is no history of what was forgotten, for it would take memory for ever."""
        super().forget(output_path)
        place = self.place(output_path)
        numbers = [each.number for each in self.ledger.builds(place) if not each.stands]
        self.ledger.forget(place, numbers)
        for number in numbers:
            self._records.pop((place, number), None)

    def _read(self, entry: Entry) -> Record:
        record = self._records.get((entry.place, entry.number))
        if record is None:
            raise missing_record(self.output_path(entry.place))
        return record
