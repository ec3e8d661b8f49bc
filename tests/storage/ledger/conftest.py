"""One ledger of each kind, several clients on one store, and other processes that are real ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from treadle.storage.ledger import AttemptNote, Ledger
from treadle.storage.ledger.memory import MemoryLedger
from treadle.storage.ledger.objects import ObjectLedger
from treadle.storage.ledger.sqlite import SqliteLedger

ACTOR = Path(__file__).with_name("actor.py")
KINDS = ["sqlite", "memory", "objects-local", "objects-memory", "objects-s3"]


@dataclass
class Actor:
    """Another process with a ledger of its own, which does one command after the other."""

    process: subprocess.Popen[str]

    def ask(self, *command: object) -> str:
        """Its answer, a line of text."""
        self.tell(*command)
        return self.hear()

    def tell(self, *command: object) -> None:
        """Give it a command without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        """Its next answer; empty when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def kill(self) -> None:
        """As a machine does that runs out of memory."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop it as a whole, its heartbeat too."""
        self.tell("pause")
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def wake(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)
        assert self.hear() == "paused"

    def end(self) -> None:
        """End it, whatever it does."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                pipe and pipe.close()


@dataclass
class Store:
    """A fresh store of one kind."""

    kind: str
    url: str
    clients: list[Ledger] = field(default_factory=list)
    actors: list[Actor] = field(default_factory=list)

    def client(self, ttl: float = 30.0) -> Ledger:
        """A ledger of its own on the store, as another process would have it; in memory there is only one."""
        if self.kind == "memory" and self.clients:
            return self.clients[0]
        self.clients.append(_MAKE[self.kind](self.url, ttl))
        return self.clients[-1]

    def actor(self, ttl: float = 30.0) -> Actor:
        """Another process on the store."""
        command = [sys.executable, str(ACTOR), self.kind, self.url, str(ttl)]
        pipe = subprocess.PIPE
        self.actors.append(Actor(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)))
        return self.actors[-1]


_MAKE: dict[str, Callable[[str, float], Ledger]] = {
    "sqlite": lambda url, ttl: SqliteLedger(f"{url}/.treadle/ledger.db", ttl),
    "memory": lambda url, _ttl: MemoryLedger(url),
    "objects-local": ObjectLedger,
    "objects-memory": ObjectLedger,
    "objects-s3": ObjectLedger,
}


def _url(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "objects-s3":
        return f"{request.getfixturevalue('s3')}/{uuid4().hex}"
    if kind.endswith("memory"):
        return f"memory://{uuid4().hex}"
    return str(request.getfixturevalue("tmp_path") / "store")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A fresh store of every kind; `indirect` parameters choose some."""
    made = Store(request.param, _url(request.param, request))
    yield made
    for actor in made.actors:
        actor.end()
    for client in made.clients:
        heart = getattr(client, "_heart", None)
        if heart is not None:  # claims that a test has left would be kept alive for the rest of the tests
            heart.close()
        client.close()


@pytest.fixture
def ledger(store: Store) -> Ledger:
    """One client of the store."""
    return store.client()


@pytest.fixture
def note() -> Callable[..., AttemptNote]:
    """Make a note of an attempt; `note("a", outcome="failed")`."""
    return partial(_note)


def _note(place: str, run: str = "r1", outcome: str = "done", attempt: int = 1) -> AttemptNote:
    started = "2026-01-01T00:00:00+00:00"
    return AttemptNote(run, place, "step", place, attempt, outcome, "", started, 0.5)  # type: ignore[arg-type]
