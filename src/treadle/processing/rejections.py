"""What is done with rejected rows, as the section `errors` of the manifest says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from treadle.domain.result import Reject
from treadle.errors import BadRowError
from treadle.manifest.model import ErrorsSection
from treadle.storage import BadRow, RowBatch
from treadle.storage.dataset import RAW_BYTES

REASONS_SHOWN = 3


class Rejections:
    """Takes rejected rows: the first one fails the run, or all are skipped, or each is given to `keep`."""

    def __init__(self, rules: ErrorsSection, keep: Callable[[BadRow], object]) -> None:
        self._rules = rules
        self._keep = keep
        self.first_reasons: list[str] = []

    def take(self, rows: Iterable[BadRow]) -> None:
        """Take rows in the order of their lines.

        Raises:
            BadRowError: there is a row, and the manifest says `fail`.
        """
        for bad in sorted(rows, key=lambda each: each.line):
            if self._rules.on_bad_row == "fail":
                raise BadRowError(bad.source, bad.line, bad.reason, bad.offset, bad.kind)
            if self._rules.on_bad_row == "quarantine":
                self._keep(bad)
            if len(self.first_reasons) < REASONS_SHOWN:
                self.first_reasons.append(f"{bad.source}:{bad.line}: {bad.reason}")


def rejected_rows(batch: RowBatch, rejects: Sequence[Reject]) -> Iterator[BadRow]:
    """The rows of the batch that cannot be used, those that `rejects` refuses written as JSON."""
    yield from batch.bad
    for reject in rejects:
        row = batch.records[reject.index]
        text = json.dumps(row, ensure_ascii=False, default=str)
        raw = text.encode("utf-8", "backslashreplace")[:RAW_BYTES]
        yield BadRow(batch.source, batch.lines[reject.index], reject.reason, raw, kind=reject.kind)
