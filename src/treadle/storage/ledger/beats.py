"""Signs of life on a storage that may not answer: each in a thread, one at a time for each claim."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from treadle.errors import ArtifactError, LedgerError
from treadle.storage.ledger.heart import Kept


class Beats:
    """`beat` gives one sign of life, and may raise ArtifactError; `url` is what messages call the ledger."""

    def __init__(self, beat: Callable[[Kept], None], url: str) -> None:
        self._beat = beat
        self._url = url
        self.under_way: set[str] = set()
        """The tokens of the claims that wait for an answer."""

    def make(self, kept: Sequence[Kept], seconds: float) -> None:
        """See `Beat`. A storage that does not answer holds up nobody but the claim that waits for it.

        Raises:
            ArtifactError: for one of them it failed.
            LedgerError: for one of them there was no answer within so many `seconds`.
        """
        errors: list[ArtifactError] = []
        # A second beat of a claim, beside one that still waits for an answer, would take it for another's.
        free = [each for each in kept if each.claim.token not in self.under_way]
        deadline = time.monotonic() + seconds
        threads = [self._start(each, errors) for each in free]
        for each in threads:
            each.join(max(0.0, deadline - time.monotonic()))
        if errors:
            raise errors[0]
        if len(free) < len(kept) or any(each.is_alive() for each in threads):
            raise LedgerError(f"{self._url}: no answer to a sign of life for {seconds:.1f} s")

    def _start(self, kept: Kept, errors: list[ArtifactError]) -> threading.Thread:
        # No pool: its threads would hold up the end of the process for as long as they wait.
        thread = threading.Thread(target=self._try, args=(kept, errors), daemon=True)
        self.under_way.add(kept.claim.token)
        try:
            thread.start()
        except BaseException:
            self.under_way.discard(kept.claim.token)
            raise
        return thread

    def _try(self, kept: Kept, errors: list[ArtifactError]) -> None:
        try:
            self._beat(kept)
        except ArtifactError as error:
            errors.append(error)
        finally:
            self.under_way.discard(kept.claim.token)
