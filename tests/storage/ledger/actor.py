"""A process with a ledger of its own: one JSON command on each line it reads, one line of answer to each."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from treadle.errors import LeaseLostError
from treadle.storage.ledger import AttemptNote, Claim, Held, Ledger
from treadle.storage.ledger.sqlite import SqliteLedger

kind, url, ttl = sys.argv[1:]
ledger: Ledger
if kind == "sqlite":
    ledger = SqliteLedger(f"{url}/.treadle/ledger.db", float(ttl))
else:
    from treadle.storage.ledger.objects import ObjectLedger  # here: fsspec takes a while to load

    ledger = ObjectLedger(url, float(ttl))
claims: dict[str, Claim] = {}
lost: dict[str, threading.Event] = {}


def claim(place: str) -> str:
    """Claim it; the number of the build, or who holds it."""
    lost[place] = threading.Event()
    found = ledger.claim(place, lost[place].set, "actor")
    if isinstance(found, Held):
        return f"held by process {found.owner.pid}"
    claims[place] = found
    return str(found.number)


def commit(place: str, head: str, files: str = "") -> str:
    """Commit; `files`: a folder, published by a file that holds the head."""
    note = AttemptNote("actor", place, "step", place, 1, "done", "", "2026-01-01T00:00:00+00:00", 0.1)
    publish: Callable[[], None] | None = (lambda: publish_file(files, head)) if files else None
    try:
        ledger.commit(claims[place], head, "{}", note, publish)
    except LeaseLostError:
        return "lost"
    return "committed"


def publish_file(files: str, head: str) -> None:
    """Put the head where the record says the output is, in one step."""
    staged = Path(files, f"staged-{os.getpid()}")
    staged.write_text(head)
    staged.replace(Path(files, "output"))


def churn(place: str, files: str) -> str:
    """Build the place again and again, until killed."""
    while True:
        if claim(place).isdigit():
            commit(place, f"{os.getpid()}-{claims[place].number}", files)


def release(place: str) -> str:
    """Give up."""
    ledger.release(claims.pop(place))
    return "released"


def wait_until_lost(place: str) -> str:
    """Wait for the call of `on_lost`."""
    return "lost" if lost[place].wait(30) else "kept"


def pause() -> str:
    """Stop this process, but not while its heartbeat holds the write lock of the file."""
    with ledger._base.lock if isinstance(ledger, SqliteLedger) else nullcontext():
        os.kill(os.getpid(), signal.SIGSTOP)
    return "paused"


def is_lost(place: str) -> str:
    """Whether `on_lost` was called so far."""
    return str(lost[place].is_set())


COMMANDS = {each.__name__: each for each in (claim, commit, release, wait_until_lost, is_lost, churn, pause)}

if __name__ == "__main__":
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(COMMANDS[name](*arguments), flush=True)
