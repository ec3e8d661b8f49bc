"""`ls`, `show`, `logs`, `history`: what is in a store, told for people and for programs."""

import json
import re
from pathlib import Path

import pytest

from tests.integrations.cli.conftest import Project

LOOKS = (
    ["ls"],
    ["history"],
    ["show", "x"],
    ["logs", "x"],
    ["diff", "x"],
    ["verify"],
    ["gc"],
    ["forget", "x"],
)


@pytest.mark.parametrize("arguments", LOOKS, ids=lambda each: each[0])
def test_a_store_on_a_missing_path_is_not_made(project: Project, arguments: list[str]) -> None:
    """A typo in the path must not look like an empty store."""
    told = project(*arguments, "--store", "nowhere")
    assert told.code == 2
    assert "found none at" in told.err
    assert "treadle run TARGET --store nowhere" in told.err
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("arguments", LOOKS, ids=lambda each: each[0])
def test_an_empty_store_stays_empty(project: Project, arguments: list[str]) -> None:
    Path("empty").mkdir()
    told = project(*arguments, "--store", "empty")
    assert told.code == (2 if "x" in arguments else 0), told.err
    assert "none is known" in told.err or "empty" in told.out
    assert not any(Path("empty").iterdir())


@pytest.mark.parametrize("arguments", LOOKS, ids=lambda each: each[0])
def test_a_corrupt_ledger_is_an_error_with_a_remedy(project: Project, arguments: list[str]) -> None:
    Path("torn/.treadle").mkdir(parents=True)
    Path("torn/.treadle/ledger.db").write_bytes(b"no database at all" * 100)
    told = project(*arguments, "--store", "torn")
    assert told.code == 1
    assert "ledger.db: cannot use the ledger of the store" in told.err
    assert "Traceback" not in told.err


def test_ls_lists_the_latest_first(built: Project) -> None:
    lines = built("ls").out.splitlines()
    assert lines[0].split() == ["step", "arguments", "when", "time", "files", "size", "state"]
    assert sorted(re.findall(r"numbers-\w+ +(upto=\d)  ", "\n".join(lines))) == ["upto=1", "upto=2"]
    assert [line.split("-")[0] for line in lines[1:5]] == ["report", "total", "numbers", "numbers"]
    assert lines[5].startswith("4 steps, 3 bytes, in ")
    assert lines[6] == f"next: treadle show {built.ids()['report']}"


def test_ls_by_pattern_and_as_json(built: Project) -> None:
    listed = json.loads(built("ls", "num*", "--json").out)
    assert sorted(each["bytes"] for each in listed) == [1, 2]
    assert {each["state"] for each in listed} == {"done"}
    assert built("ls", "--limit", "1").out.splitlines()[2].startswith("1 step of 4, ")
    assert built("ls", "--limit", "0").code == 2
    assert built("ls", "nothing").out.startswith("no step that fits 'nothing' in ")


def test_ls_sees_what_failed_and_what_is_gone(built: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAK", "1")
    built("run", built.target, "--force", "total")
    [failed] = json.loads(built("ls", "--failed", "--json").out)
    assert (failed["name"], failed["state"]) == ("total", "failed")
    assert failed["reason"].startswith("ValueError: no such [shard] (")
    for path in built.folder.rglob("numbers.txt"):
        path.unlink()
    assert built("ls", "num*").out.count("files gone") == 2


def test_show_tells_all_of_a_record(built: Project) -> None:
    told = built("show", "total").out
    assert re.search(r"^value +3$", told, re.MULTILINE)
    assert re.search(r"^recipe +arguments\.values = \[numbers-", told, re.MULTILINE)
    assert len(re.findall(r"numbers-\w+, build \w{12}$", told, re.MULTILINE)) == 2
    assert re.search(r"^run +\S+ on \S+, 1 attempt$", told, re.MULTILINE)
    [number, _] = json.loads(built("ls", "numbers", "--json").out)
    assert "numbers.txt  " in built("show", number["place"]).out


def test_show_names_the_first_of_very_many(project: Project) -> None:
    """A step may need ten thousand others, and what follows them is to be seen."""
    Path(project.target).write_text(
        "from treadle import step\n\n\n@step\ndef one(i: int) -> int:\n    return i\n\n\n"
        "@step\ndef total(xs: list) -> int:\n    return sum(xs)\n\n\n"
        "def build():\n    return total([one(i) for i in range(25)])\n"
    )
    assert project("run", project.target).code == 0
    out = project("show", "total").out
    assert out.count(", build ") == 20
    assert "            and 5 more\n" in out


def test_show_of_what_is_not_built_says_why(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAK", "1")
    project("run", project.target)
    told = project("show", "total")
    assert told.code == 2
    assert "no build of it stands; its last attempt failed: ValueError: no such [shard]" in told.err
    assert "treadle logs total-" in told.err


def test_logs_print_all_attempts_or_one(built: Project) -> None:
    built("run", built.target, "--force", "numbers")
    [number] = [each for each in json.loads(built("ls", "numbers", "--json").out) if each["bytes"] == 2]
    told = built("logs", number["id"])
    assert told.out.count("stdout | up to 2") == 2
    assert built("logs", number["id"], "--attempt", "1").out.count("up to 2") == 1
    wrong = built("logs", number["id"], "--attempt", "7")
    assert wrong.code == 2
    assert "no attempt 7 (known: 1)" in wrong.err
    assert "printed nothing" in built("logs", "report").err
    latest = built("logs", "numbers").err
    assert re.search(r"log of numbers-\w+ \(upto=\d\), the latest of 2 steps of that name", latest)


def test_logs_follow_a_step_that_runs_for_the_first_time(project: Project) -> None:
    """That is when one wants to see what it prints."""
    gate = project.folder / "gate"
    project.write(project.text.replace("while ", 'print("before the gate")\n    while '))
    run = project.start("run", project.target, GATE=str(gate), BREAK="1")
    while not Path(f"{gate}.reached").exists():
        assert run.poll() is None
    assert re.search(r"total-\w{12} .* running", project("ls").out)
    assert "no build of it stands yet; at work on it: run " in project("show", "total").err
    assert "at work on it: run " in project("why", project.target, "total").out
    assert "what that makes will stand: run " in project("forget", "total").out
    follow = project.start("logs", "total", "--follow")
    assert follow.stdout is not None
    assert "before the gate" in follow.stdout.readline()
    gate.touch()
    run.communicate()
    out, err = follow.communicate()
    assert follow.returncode == 0, err
    assert "about to break" in out
    assert "failed after" in err


def test_a_killed_run_is_not_taken_for_one_at_work(project: Project) -> None:
    """Its lease is left behind; whoever waited for it to end would wait for ever."""
    gate = project.folder / "gate"
    project.write(project.text.replace("while ", 'print("before the gate")\n    while '))
    run = project.start("run", project.target, GATE=str(gate))
    while not Path(f"{gate}.reached").exists():
        assert run.poll() is None
    run.kill()
    run.communicate()
    told = project("logs", "total", "--follow")
    assert "before the gate" in told.out
    assert "it ended without a word" in told.err
    assert "2 to run" in project("plan", project.target).out
    gate.touch()
    assert "2 done" in project("run", project.target).err


def test_an_object_store_is_looked_at_like_a_disk(project: Project) -> None:
    store = ("--store", f"memory://{project.folder.name}")
    assert project("run", project.target, *store).code == 0
    assert "4 steps, 3 bytes" in project("ls", *store).out
    assert "total 3" in project("show", "report", *store).out
    assert "stdout | up to " in project("logs", "numbers", *store).out
    assert "4 done" in project("history", *store).out
    assert ": whole" in project("verify", *store).out
    assert "does not stand any more" in project("forget", "report", *store).out
    assert project("gc", *store).code == 0


def test_a_reader_that_has_seen_enough_is_no_error(built: Project) -> None:
    """`treadle ls | head -1` closes the pipe early."""
    process = built.start("ls")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait()


def test_history_of_a_store_and_of_a_step(built: Project) -> None:
    built("run", built.target, "--force", "total")
    lines = built("history").out.splitlines()
    assert lines[0].split() == ["run", "when", "time", "steps", "command"]
    assert len(lines) == 4
    assert "4 done" in lines[2]
    assert len(built("history", "--limit", "1").out.splitlines()) == 3
    told = built("history", "total").out
    assert len(re.findall(r"^ +[12]  \w{12} ", told, re.MULTILINE)) == 2
    assert told.count("stands") == 1
    assert f"next: treadle diff {built.ids()['total']}" in told
    assert built("history", "--limit", "0").code == 2
