"""What can befall a file: damage, deletion, a newer format, no space, no permission, a hung process."""

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.errors import ArtifactError, LedgerError
from treadle.storage.ledger import AttemptNote, Claim, database
from treadle.storage.ledger.sqlite import SqliteLedger

Note = Callable[..., AttemptNote]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / ".treadle" / "ledger.db"


@pytest.fixture
def ledger(path: Path, note: Note) -> SqliteLedger:
    """With one build of `a`."""
    made = SqliteLedger(str(path), 30.0)
    made.commit(take(made), '{"h": 1}', '{"b": 1}', note("a"), None)
    return made


def take(ledger: SqliteLedger, place: str = "a") -> Claim:
    claim = ledger.claim(place, lambda: None)
    assert isinstance(claim, Claim)
    return claim


def change(path: Path, statement: str, *values: object) -> None:
    """By hand, as a broken disk might."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()


def test_reading_makes_no_file(path: Path) -> None:
    """A dry run on a store that is not there has no effect."""
    ledger = SqliteLedger(str(path), 30.0)
    assert ledger.latest(["a"]) == {}
    assert ledger.attempts() == []
    assert not path.parent.parent.exists()


@pytest.mark.parametrize("head", ['{"h": 2}', "", b"\xff\xfe", '{"h": 1} '])
def test_a_damaged_head_is_never_served(ledger: SqliteLedger, path: Path, head: str | bytes) -> None:
    change(path, "UPDATE builds SET head = CAST(? AS TEXT)", head)
    for read in (lambda: ledger.latest(["a"]), lambda: list(ledger.places()), lambda: ledger.builds("a")):
        with pytest.raises(ArtifactError, match=r"ledger\.db: build 1 of a is damaged: .*: treadle forget a"):
            read()
    ledger.withdraw("a")
    assert ledger.latest(["a"]) == {}
    ledger.forget("a", [1])
    assert ledger.builds("a") == []


def test_a_damaged_body_is_never_served(ledger: SqliteLedger, path: Path) -> None:
    change(path, "UPDATE builds SET body = '{}'")
    assert ledger.latest(["a"])["a"].head == '{"h": 1}'
    for read in (lambda: ledger.body("a", 1), lambda: ledger.builds("a")):
        with pytest.raises(ArtifactError, match="build 1 of a is damaged"):
            read()


def test_the_row_of_another_build_is_no_substitute(ledger: SqliteLedger, path: Path) -> None:
    change(path, "UPDATE builds SET place = 'b'")
    with pytest.raises(ArtifactError, match="build 1 of b is damaged"):
        ledger.latest(["b"])


def test_a_lease_that_cannot_be_read_is_of_an_unknown_owner(ledger: SqliteLedger, path: Path) -> None:
    """It runs out like any other, so nobody has to remove it by hand."""
    take(ledger)
    change(path, "UPDATE leases SET owner = '[]'")
    assert "unknown" in ledger.owners(["a"])["a"].describe()


@pytest.mark.parametrize("use", [lambda each: each.latest(["a"]), lambda each: each.claim("a", print)])
def test_a_newer_format_asks_for_a_newer_treadle(
    ledger: SqliteLedger, path: Path, use: Callable[[SqliteLedger], object]
) -> None:
    ledger.close()
    change(path, "UPDATE meta SET value = '2' WHERE key = 'format'")
    with pytest.raises(ArtifactError, match=r"ledger\.db: the ledger has format 2, .*: upgrade treadle"):
        use(ledger)


def test_a_file_that_is_no_ledger_says_what_to_do(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"something else " * 1000)
    with pytest.raises(LedgerError, match=r"ledger\.db: .* \(SQLITE_NOTADB\); .*move it away"):
        SqliteLedger(str(path), 30.0).latest(["a"])


def test_torn_pages_say_what_to_do(ledger: SqliteLedger, path: Path) -> None:
    ledger.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xab" * (len(content) - 4096))
    with pytest.raises(LedgerError, match="the file is damaged"):
        ledger.latest(["a"])


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_is_deleted_under_us_is_noticed(
    ledger: SqliteLedger, path: Path, note: Note, replaced: bool
) -> None:
    """Else the step would be committed into a file that nobody can open any more."""
    claim, published = take(ledger), list[str]()
    for each in path.parent.iterdir():
        each.unlink()
    if replaced:
        SqliteLedger(str(path), 30.0).note([])
    with pytest.raises(LedgerError, match=r"ledger\.db: the store is gone: .*; run again"):
        ledger.commit(claim, "{}", "{}", note("a"), lambda: published.append("files"))
    assert published == []


def test_a_file_in_the_way_of_the_folder_is_named(path: Path) -> None:
    path.parent.parent.mkdir()
    path.parent.write_text("in the way")
    with pytest.raises(LedgerError, match=r"ledger\.db: cannot make the ledger .*choose another prefix"):
        SqliteLedger(str(path), 30.0).claim("a", lambda: None)


def test_a_lock_held_too_long_is_named(
    ledger: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0.05)
    ledger.close()
    other = sqlite3.connect(path, isolation_level=None)
    ledger.latest(["a"])
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        LedgerError, match=r"ledger\.db: .*SQLITE_BUSY.*; another process holds the write lock"
    ):
        ledger.claim("a", lambda: None)
    assert ledger.latest(["a"])["a"].number == 1
    other.execute("ROLLBACK")
    other.close()
    assert take(ledger).number == 2


def test_a_beat_that_meets_a_lock_is_tried_again(
    ledger: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger._heart, "ttl", 0.06)  # how long a beat waits for a lock follows from it
    lost: list[str] = []
    claim = ledger.claim("b", lambda: lost.append("b"))
    assert isinstance(claim, Claim)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert not ledger._heart.tick()
    other.execute("ROLLBACK")
    assert ledger._heart.tick()
    other.execute("DELETE FROM leases")
    other.close()
    assert ledger._heart.tick()
    assert lost == ["b"]


def run(code: str, *arguments: str, **options: object) -> str:
    """The last line that a process with this code prints."""
    prelude = "from treadle.storage.ledger import *\nfrom treadle.errors import *\nimport sys, os, resource\n"
    command = [sys.executable, "-c", prelude + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout.splitlines()[-1])


FULL = """
ledger = open_ledger(sys.argv[1])
note = AttemptNote("r", "a", "a", "a", 1, "done", "", "2026-01-01T00:00:00+00:00", 0.1)
ledger.commit(ledger.claim("a", print), "first", "{}", note, None)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
claim, failed = ledger.claim("a", print), ""
try:
    ledger.commit(claim, "second", "x" * 300_000, note, None)
except LedgerError as error:
    failed = str(error)
assert ledger.latest(["a"])["a"].head == "first"
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
ledger.commit(claim, "second", "x" * 300_000, note, None)
assert ledger.latest(["a"])["a"].head == "second"
print(failed)
"""


def test_a_full_disk_is_named_and_costs_only_what_did_not_fit(tmp_path: Path) -> None:
    said = run(FULL, str(tmp_path))
    assert f"{tmp_path}/.treadle/ledger.db: cannot use the ledger" in said
    assert "space" in said


READ_ONLY = """
import tomllib  # loaded late otherwise, when the library of Python may be closed to this user
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    open_ledger(sys.argv[1]).claim("a", print)
except LedgerError as error:
    print(error)
"""


@pytest.mark.parametrize("present", [False, True])
def test_a_folder_that_is_read_only_is_named(note: Note, present: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if present:
            SqliteLedger(f"{folder}/.treadle/ledger.db", 30.0).note([note("a")])
            for each in Path(folder, ".treadle").iterdir():
                each.chmod(0o444)
            Path(folder, ".treadle").chmod(0o555)
        Path(folder).chmod(0o555)
        said = run(READ_ONLY, folder)
        Path(folder).chmod(0o755)
        if present:
            Path(folder, ".treadle").chmod(0o755)
    assert f"{folder}/.treadle/ledger.db: " in said
    assert said.endswith("allow this user to write there, or choose another prefix")
