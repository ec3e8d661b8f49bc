"""Ledgers with wrong bytes, of newer formats, and under clocks that jump: told, and never served."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.artifacts import Store, open_store
from treadle.artifacts.record import FORMAT
from treadle.artifacts.verify import verify
from treadle.errors import ArtifactError, LedgerError, StepsFailedError
from treadle.execution import StepRunner, StepSpec
from treadle.testing import temporary_store

SEED = int(os.environ.get("TREADLE_TEST_SEED", "20261129"))


def step(prefix: str, name: str = "a", size: int = 3, deps: tuple[StepSpec, ...] = ()) -> StepSpec:
    """A step that writes that many bytes and returns its name."""

    def fn(path: str) -> str:
        Path(path, "out.bin").write_bytes(b"x" * size)
        return name

    return StepSpec(name, fn, deps, output_path_prefix=prefix)


def is_served(spec: StepSpec) -> None:
    """A run gives the value, and all is in order."""
    assert StepRunner().run([spec])[spec.id] == spec.name
    assert list(verify(open_store(str(spec.output_path_prefix)))) == []


@pytest.fixture
def store() -> Iterator[Store]:
    with temporary_store() as store:
        yield store


def ledger_bytes(store: Store) -> tuple[Path, bytes]:
    """The file of the ledger with all that it has, and its content."""
    file = Path(store.prefix, ".treadle", "ledger.db")
    store.ledger.close()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return file, file.read_bytes()


def put_back(store: Store, file: Path, content: bytes) -> None:
    store.ledger.close()
    for end in ("-wal", "-shm"):
        file.with_name(f"{file.name}{end}").unlink(missing_ok=True)
    file.write_bytes(content)


def test_a_ledger_with_random_bytes_anywhere_is_told_by_its_path_and_never_served(store: Store) -> None:
    """At every 512 bytes; what is served all the same is what was built."""
    print(f"TREADLE_TEST_SEED={SEED}")
    chance = random.Random(SEED)
    steps = [step(store.prefix, f"s{n}") for n in range(12)]
    StepRunner().run(steps)
    outputs = {each.output_path: Path(each.output_path, "out.bin").read_bytes() for each in steps}
    file, content = ledger_bytes(store)
    seen = {"told": 0, "whole": 0, "built": 0}
    for offset in range(0, len(content), 512):
        damaged = bytearray(content)
        damaged[offset : offset + 64] = chance.randbytes(64)
        put_back(store, file, bytes(damaged))
        seen[_outcome(steps, file, offset)] += 1
        assert {path: Path(path, "out.bin").read_bytes() for path in outputs} == outputs
    assert min(seen["told"], seen["whole"]) > 0, seen
    put_back(store, file, content)
    for each in steps:
        is_served(each)


def _outcome(steps: list[StepSpec], file: Path, offset: int) -> str:
    """What a run over a damaged ledger comes to: each way but these is wrong."""
    try:
        results = StepRunner().run(steps)
        values = {step.name: results[step.id] for step in steps}
    except (ArtifactError, StepsFailedError) as error:
        told, errors = str(error), getattr(error, "exceptions", [error])
    else:
        assert values == {step.name: step.name for step in steps}, offset
        kinds = {type(each.outcome).__name__ for each in results.outcomes.values()}
        return "whole" if kinds == {"Cached"} else "built"
    assert str(file) in told, (offset, told)
    assert all(isinstance(each, ArtifactError) for each in errors), (offset, told)
    return "told"


def test_a_damaged_ledger_is_healed_by_what_the_message_says(store: Store) -> None:
    spec = step(store.prefix)
    is_served(spec)
    file, content = ledger_bytes(store)
    put_back(store, file, content[:50] + bytes(len(content) - 50))
    with pytest.raises(LedgerError, match=rf"{file}.*move it away"):
        StepRunner().run([spec])
    store.ledger.close()
    for each in file.parent.glob("ledger.db*"):
        each.rename(each.with_name(f"damaged-{each.name}"))
    is_served(spec)


def test_a_truncated_ledger_is_told_or_has_the_build(store: Store) -> None:
    spec = step(store.prefix)
    is_served(spec)
    file, content = ledger_bytes(store)
    for length in range(1, len(content), 4096):
        put_back(store, file, content[:length])
        came = _outcome([spec], file, length)
        assert came in ("told", "whole") or length < 512, "SQLite takes less than that for a new file"
    put_back(store, file, content)
    is_served(spec)


def newer(store: Store, column: str) -> None:
    """Make the build of a store one of a newer treadle."""
    (entry,) = store.ledger.places()
    claim = store.ledger.claim(entry.place, lambda: None)
    texts = {"head": entry.head, "body": store.ledger.body(entry.place, entry.number)}
    texts[column] = json.dumps({**json.loads(texts[column]), "format": FORMAT + 1})
    note = store.ledger.attempts()[0]
    store.ledger.commit(claim, texts["head"], texts["body"], note, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("column", ["head", "body"])
def test_a_record_of_a_newer_format_is_told_and_never_served(store: Store, column: str) -> None:
    spec = step(store.prefix)
    is_served(spec)
    newer(store, column)
    words = (
        rf"{store.ledger.url}: {store.place(spec.output_path)}: .*format {FORMAT + 1}.*newer treadle.*upgrade"
    )
    with pytest.raises(ArtifactError, match=words):
        StepRunner().run([spec])[spec.id]
    assert Path(spec.output_path, "out.bin").exists()
    store.forget(spec.output_path)
    is_served(spec)


def test_a_ledger_of_a_newer_format_is_told_and_left_as_it_is(store: Store) -> None:
    spec = step(store.prefix)
    is_served(spec)
    file, _ = ledger_bytes(store)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    connection.close()
    with pytest.raises(ArtifactError, match=rf"{file}: the ledger has format 99, written by a newer treadle"):
        StepRunner().run([spec])


# Clocks

JUMPING = """
import datetime, sys, time

JUMP = [0.0]
real_time, real_datetime = time.time, datetime.datetime
time.time = lambda: real_time() + JUMP[0]
time.time_ns = lambda: int(time.time() * 1e9)

class Jumping(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return real_datetime.fromtimestamp(time.time(), tz)

datetime.datetime = Jumping
prefix, jump = sys.argv[1], float(sys.argv[2])

from treadle.artifacts import open_store
from treadle.artifacts.verify import verify
from treadle.execution import StepRunner, StepSpec
from treadle.storage.ledger import Held, open_ledger

def fn(path):
    JUMP[0] += jump
    watcher = open_ledger(prefix, lease_seconds=29.0)  # not the one that this process has open
    for _ in range(20):  # for longer than the lease lives without a beat of its heart
        held = watcher.claim(open_store(prefix).place(spec.output_path), lambda: None)
        assert isinstance(held, Held), "a jump of the clock has made the lease stale"
        time.sleep(0.1)
    return "kept"

spec = StepSpec("a", fn, output_path_prefix=prefix)
assert StepRunner().run([spec])[spec.id] == "kept"
JUMP[0] -= 3 * jump
results = StepRunner().run([spec])
assert [type(each.outcome).__name__ for each in results.outcomes.values()] == ["Cached"]
assert StepRunner().run([spec], force=["a"])[spec.id] == "kept"
store = open_store(prefix)
assert [each.number for each in store.records(store.place(spec.output_path))] == [1, 2]
assert [each.outcome for each in store.ledger.attempts()] == ["done", "done"]
assert list(verify(store)) == []
print("fine")
"""


@pytest.mark.parametrize("jump", [86_400.0, -40 * 365 * 86_400.0])
def test_a_clock_that_jumps_takes_no_lease_away(tmp_path: Path, jump: float) -> None:
    environment = {**os.environ, "TREADLE_LEASE_SECONDS": "1.5"}
    command = [sys.executable, "-c", JUMPING, str(tmp_path / "store"), str(jump)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.endswith("fine\n"), done.stderr
