"""Which ledger a store gets."""

import multiprocessing
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from treadle.errors import ArgumentError, LedgerError
from treadle.storage.ledger import Claim, RunNote, close_ledger, open_ledger
from treadle.storage.ledger.memory import MemoryLedger
from treadle.storage.ledger.mounts import is_shared_by_machines, is_shared_kind, kind_of_file_system
from treadle.storage.ledger.objects import ObjectLedger
from treadle.storage.ledger.sqlite import SqliteLedger

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local xfs rw 0 0
tmpfs /mnt/with\\040space tmpfs rw 0 0
first /over lustre rw 0 0
second /over ext4 rw 0 0
"""


def test_the_kind_follows_from_the_prefix(tmp_path: Path) -> None:
    assert isinstance(open_ledger(str(tmp_path)), SqliteLedger)
    assert isinstance(open_ledger(f"file://{tmp_path}/a"), SqliteLedger)
    assert isinstance(open_ledger("memory://kind"), MemoryLedger)
    assert isinstance(open_ledger("s3://bucket/prefix"), ObjectLedger)
    assert list(tmp_path.iterdir()) == []


def test_a_store_has_one_ledger_for_all_threads(tmp_path: Path) -> None:
    first = open_ledger(str(tmp_path))
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(open_ledger(f"file://{tmp_path}/")))
    thread.start()
    thread.join()
    assert found == [first]
    assert open_ledger(str(tmp_path / "other")) is not first


def test_a_store_that_was_deleted_gets_a_new_ledger(tmp_path: Path) -> None:
    first = open_ledger(str(tmp_path))
    first.note([])
    for each in (tmp_path / ".treadle").iterdir():
        each.unlink()
    assert open_ledger(str(tmp_path)) is not first
    assert open_ledger(str(tmp_path)).attempts() == []


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_ledger_that_was_closed_is_made_anew(kind: str, tmp_path: Path) -> None:
    """Else a process that opens many stores, as a suite of tests does, keeps them all."""
    prefix = str(tmp_path) if kind == "local" else "memory://closed"
    first = open_ledger(prefix)
    first.note_run(RunNote("r", "2026-01-01T00:00:00+00:00", "", "host", "treadle run", {}))
    close_ledger(f"{prefix}/")
    close_ledger(prefix)
    assert open_ledger(prefix) is not first
    assert [each.run for each in open_ledger(prefix).runs()] == (["r"] if kind == "local" else [])
    close_ledger(prefix)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/data", "ext4"),
        ("/home/me/store", "nfs4"),
        ("/home/local/store", "xfs"),
        ("/homework", "ext4"),
        ("/mnt/with space/x", "tmpfs"),
        ("/over/x", "ext4"),
    ],
)
def test_the_innermost_and_latest_mount_counts(folder: str, kind: str) -> None:
    assert kind_of_file_system(folder, MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "cifs", "smb3", "gpfs", "fuse.sshfs", "9p"])
def test_network_file_systems_are_shared(kind: str) -> None:
    assert is_shared_kind(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "fuseblk", ""])
def test_local_file_systems_are_not(kind: str) -> None:
    assert not is_shared_kind(kind)


def test_where_there_is_no_table_of_mounts_a_folder_counts_as_local(tmp_path: Path) -> None:
    assert not is_shared_by_machines(str(tmp_path), tmp_path / "none")
    table = tmp_path / "mounts"
    table.write_text(f"server:/x {tmp_path} nfs rw 0 0\n")
    assert is_shared_by_machines(str(tmp_path / "store"), table)


def test_the_life_of_a_lease_comes_from_the_argument_the_environment_or_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TREADLE_LEASE_SECONDS", raising=False)
    monkeypatch.chdir(tmp_path)

    def life(given: float | None = None) -> float:
        ledger = open_ledger(str(tmp_path / "store"), lease_seconds=given)
        assert isinstance(ledger, SqliteLedger)
        return ledger._ttl

    assert life() == 30
    (tmp_path / "treadle.toml").write_text("lease_seconds = 20")
    assert life() == 20
    monkeypatch.setenv("TREADLE_LEASE_SECONDS", "12.5")
    assert life() == 12.5
    assert life(3) == 3


@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "nan", "inf"])
def test_a_life_that_is_no_positive_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_LEASE_SECONDS", text)
    with pytest.raises(ArgumentError, match="TREADLE_LEASE_SECONDS: expected a number of seconds above 0"):
        open_ledger("memory://x")


def test_a_missing_package_for_a_url_is_named() -> None:
    """In a process of its own, because fsspec remembers what it has loaded."""
    code = (
        "import sys; sys.modules['s3fs'] = None\n"
        "from treadle.storage.ledger import open_ledger\n"
        "open_ledger('s3://bucket/elsewhere').latest(['a'])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "MissingExtraError: a store at s3://bucket needs the package 's3fs'" in done.stderr
    assert "pip install 'treadle[s3]'" in done.stderr


def test_a_storage_that_fsspec_cannot_open_is_named() -> None:
    with pytest.raises(LedgerError, match=r"unknown://bucket/.*: cannot use the ledger of the store"):
        open_ledger("unknown://bucket").latest(["a"])


def _child(prefix: str, answers: "multiprocessing.Queue[object]") -> None:
    ledger = open_ledger(prefix)
    claim = ledger.claim("child", lambda: None)
    answers.put((type(claim).__name__, sorted(ledger.latest(["a"])), sorted(ledger.owners(["a", "parent"]))))


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_a_forked_child_has_its_own_connection_and_claims(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    prefix = str(tmp_path) if kind == "local" else request.getfixturevalue("s3") + "/forked"
    ledger = open_ledger(prefix)
    own = ledger.claim("parent", lambda: None)
    fork = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[object] = fork.Queue()
    child = fork.Process(target=_child, args=(prefix, answers))
    child.start()
    assert answers.get(timeout=60) == ("Claim", [], ["parent"])
    child.join()
    assert child.exitcode == 0
    assert sorted(ledger.owners(["parent", "child"])) == ["child", "parent"]
    taken = ledger.claim("child", lambda: None)
    assert isinstance(own, Claim)
    assert isinstance(taken, Claim)
    for claim in (own, taken):  # else its heartbeat goes on for the rest of the tests
        ledger.release(claim)


@pytest.mark.parametrize(("module", "kind"), [("sqlite", "SqliteLedger"), ("objects", "ObjectLedger")])
def test_a_process_may_end_with_claims(module: str, kind: str, tmp_path: Path) -> None:
    """As after a second Ctrl-C: neither noise nor a wait for the heartbeat."""
    code = (
        f"from treadle.storage.ledger.{module} import {kind}\n"
        f"import threading; ledger = {kind}({str(tmp_path / 'store')!r}, 0.003)\n"
        "ledger.claim('a', list); threading.Event().wait(0.05)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("", "")
