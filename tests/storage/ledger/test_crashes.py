"""A process that dies anywhere in a commit leaves a standing build with its files, or none."""

import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from treadle.storage.ledger import Claim, Ledger
from treadle.storage.ledger.sqlite import SqliteLedger

if TYPE_CHECKING:
    from tests.storage.ledger.conftest import Store

DIE = """
import os, sys
from pathlib import Path
from treadle.storage.ledger import AttemptNote
from treadle.storage.ledger.sqlite import SqliteLedger

path, output, last = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
ledger = SqliteLedger(path, 30.0)
note = AttemptNote("r", "a", "a", "a", 1, "done", "", "2026-01-01T00:00:00+00:00", 0.1)
claim = ledger.claim("a", print)

def publish():
    output.write_text(str(claim.number))
    step("publish")

steps = 0
def step(_):
    global steps
    steps += 1
    if steps > last:
        os._exit(3)

ledger._base._connection.set_trace_callback(step)
ledger.commit(claim, str(claim.number), "{}", note, publish)
"""


def check(ledger: Ledger, output: Path) -> bool:
    """Whether a build stands, and then with its own files."""
    standing = ledger.latest(["a"])
    if not standing:
        return False
    assert standing["a"].head == output.read_text()
    return True


def test_death_before_each_statement_of_a_commit(tmp_path: Path) -> None:
    path, output = str(tmp_path / "ledger.db"), tmp_path / "output"
    command = [sys.executable, "-c", DIE, path, str(output)]
    subprocess.run([*command, "1000"], check=True, timeout=60)
    ledger, codes = SqliteLedger(path, 30.0), [3]
    while codes[-1] == 3:
        codes.append(subprocess.run([*command, str(len(codes) - 1)], check=False, timeout=60).returncode)
        stands = check(ledger, output)
        assert [each.number for each in ledger.builds("a")] == ([1] if codes[-1] else [1, 2])
    assert codes[-1] == 0
    assert stands
    assert len(codes) > 10, "the statements of a commit, and publish, were passed one by one"


@pytest.mark.parametrize("store", ["sqlite", "objects-local"], indirect=True)
def test_death_at_any_time(store: "Store", tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, client, pause = random.Random(seed), store.client(), threading.Event()
    for _ in range(8):
        actor = store.actor()
        actor.tell("claim", "warm")
        actor.hear()
        actor.tell("churn", "a", str(tmp_path))
        pause.wait(chance.uniform(0.0, 0.1))
        actor.kill()
        check(client, tmp_path / "output")
        numbers = [each.number for each in client.builds("a")]
        assert numbers == sorted(set(numbers))
    claim = client.claim("a", lambda: None)
    assert isinstance(claim, Claim)
    assert claim.number > 1
