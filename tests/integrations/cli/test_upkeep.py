"""`diff`, `verify`, `gc`, `forget`: compare and clear up."""

import re
import sqlite3

import pytest

from tests.integrations.cli.conftest import Project


def test_diff_of_two_steps_names_the_fields(built: Project) -> None:
    places = [entry.place for entry in built.store.ledger.places() if entry.place.startswith("numbers/")]
    told = built("diff", *places)
    assert re.search(r"arguments\.upto: \d → \d", told.out)
    assert re.search(r"value: \d → \d", told.out)
    assert re.search(r"file numbers.txt: \d bytes? → \d bytes?, other content", told.out)


def test_diff_of_the_last_two_builds(built: Project) -> None:
    assert (
        "expected two builds, or another step of that name, to compare, found 1"
        in built("diff", "report").err
    )
    built.write(built.text.replace('f"total {value}"', 'f"sum {value}"'))
    built("run", built.target, "--on-drift", "rebuild")
    told = built("diff", "report")
    assert "value: 'total 3' → 'sum 3'" in told.out
    assert "the code of its function" in told.out
    assert built("diff", "report#1", "report#2").out == told.out
    wrong = built("diff", "report#7", "report")
    assert wrong.code == 2
    assert "has no such build (known: 1, 2)" in wrong.err


def test_verify_finds_what_was_changed(built: Project) -> None:
    whole = built("verify")
    assert (whole.code, whole.out) == (0, f"all that is in {built.store.prefix}: whole\n")
    [file, *_] = built.folder.rglob("numbers.txt")
    file.write_text("y" * file.stat().st_size)
    told = built("verify")
    assert told.code == 1
    assert re.search(r"numbers-\w+ +other content +", told.out)
    assert "1 problem with 1 step" in told.err
    assert built("verify", "report", "total").code == 0
    assert built("verify", "reprt").code == 2
    [remedy] = re.findall(r"treadle (forget \S+)", told.err)
    assert built(*remedy.split()).code == 0
    assert built("verify").code == 0
    [again] = re.findall(r"treadle (run TARGET --select numbers)\n", told.err)
    assert "1 done" in built(*again.replace("TARGET", built.target).split()).err


def test_gc_changes_nothing_until_it_is_told_to(built: Project) -> None:
    built.write(built.text.replace("numbers(1), numbers(2)", "numbers(1), numbers(3)"))
    assert "nothing to free" in built("gc").out
    told = built("gc", built.target)
    assert "would free 2 bytes" in told.out
    assert len(list(built.folder.rglob("numbers.txt"))) == 2
    assert f"next: treadle gc {built.target} --delete" in told.out
    assert "freed 2 bytes" in built("gc", built.target, "--delete").out
    [left] = built.folder.rglob("numbers.txt")
    assert left.read_text() == "x"


def test_forget_has_a_step_built_anew(built: Project) -> None:
    told = built("forget", "report")
    assert "build 1" in told.out
    assert "does not stand any more" in told.out
    assert "there was nothing to do" in built("forget", "report").out
    assert re.search(r"report-\w+ .* forgotten", built("ls", "report", "--all").out)
    assert re.search(r"4 steps in .* 1 done, 3 cached", built("run", built.target).err)


def test_forget_leads_to_a_run_that_builds_it(built: Project) -> None:
    """What needs it is done, so a run of the whole passes it over."""
    [following] = re.findall(r"next: treadle (run .*)", built("forget", "total").out)
    assert "4 steps" not in built("run", built.target).err
    assert "1 done" in built(*following.replace("TARGET", built.target).split()).err


def test_forget_refuses_a_name_of_several(built: Project) -> None:
    """To take the latest of them in silence would be to guess."""
    told = built("forget", "numbers")
    assert told.code == 2
    assert re.search(r"give one of\n  numbers-\w+ \(upto=\d\)\n  numbers-\w+ \(upto=\d\)", told.err)
    [step, _] = re.findall(r"numbers-\w+", told.err)
    assert built("forget", step).code == 0
    assert built("forget", "numbers").code == 0


def test_ls_hides_what_was_forgotten(built: Project) -> None:
    built("forget", "report")
    told = built("ls", "report").out
    assert "1 more forgotten or removed: treadle ls report --all" in told
    assert "no step that fits 'report'" in told
    assert built("ls").out.count("report-") == 0
    assert "report-" in built("ls", "--all", "--json").out


def test_verify_of_a_name_looks_at_all_of_that_name(built: Project) -> None:
    told = built("verify", "numbers")
    assert len(re.findall(r"^  numbers-\w+ \(upto=\d\)$", told.out, re.MULTILINE)) == 2
    assert told.out.endswith("2 steps: whole\n")
    for file in built.folder.rglob("numbers.txt"):
        file.write_text("")
    assert "2 problems with 2 steps" in built("verify", "numbers").err


def test_diff_of_a_step_that_was_built_once_compares_it_with_another_of_its_name(built: Project) -> None:
    told = built("diff", "numbers")
    assert told.code == 0, told.err
    assert re.search(r"arguments\.upto: \d → \d", told.out)


def test_gc_sums_up_by_name_and_tells_what_else_it_would_remove(built: Project) -> None:
    """With one experiment of two named, the steps of the other are garbage too."""
    other = "from treadle import step\n\n@step\ndef alone(n: int) -> int:\n    return n\n\nx = alone(1)\n"
    (built.folder / "gc_other.py").write_text(other)
    told = built("gc", "gc_other.py")
    assert re.search(r"^numbers +2 +3 bytes +not needed$", told.out, re.MULTILINE)
    assert "this includes 4 steps of other names: numbers, report, total" in told.out
    each = built("gc", "gc_other.py", "--all").out
    assert len(re.findall(r"^numbers-\w{12} +\d bytes? +not needed$", each, re.MULTILINE)) == 2
    assert "this includes" not in built("gc", built.target, "gc_other.py").out


@pytest.mark.parametrize("command", ["show", "logs", "history", "diff", "verify", "forget"])
def test_an_unknown_step_is_named_with_the_nearest(built: Project, command: str) -> None:
    told = built(command, "reprot")
    assert told.code == 2
    assert "did you mean 'report'? (known: numbers, report, total)" in told.err


def test_a_name_means_the_latest_and_a_beginning_must_be_unique(built: Project) -> None:
    assert built("show", "numbers").code == 0
    several = built("show", "n")
    assert several.code == 2
    assert "2 steps are called so; give one of\n  numbers-" in several.err
    assert built("show", "rep").code == 0


def test_a_damaged_record_is_listed_and_can_be_forgotten(built: Project) -> None:
    """One bad row must not hide all others, nor stay for ever."""
    with sqlite3.connect(built.store.ledger.url) as connection:
        connection.execute(
            "UPDATE builds SET head = replace(head, 'report', 'rexort') WHERE place LIKE 'report/%'"
        )
    listed = built("ls")
    assert listed.code == 0, listed.err
    assert re.search(r"report-\w+ .* damaged", listed.out)
    told = built("show", "report")
    assert told.code == 1
    [remedy] = re.findall(r"treadle (forget \S+)", told.err)
    assert built(*remedy.split()).code == 0
    assert "1 done" in built("run", built.target).err


def test_one_id_at_two_places_is_told_apart_by_the_places(project: Project) -> None:
    """A step that was moved leaves its former output behind, under the same id."""
    text = """
from treadle import StepSpec


def body(path):
    return 1


def build():
    return StepSpec("one", body, override_output_path="PLACE")
"""
    for place in ("here", "there"):
        project.write(text.replace("PLACE", place))
        assert project("run", project.target).code == 0
    told = project("show", project.ids()["one"])
    assert told.code == 2
    assert "2 steps are called so; give one of\n  here\n  there" in told.err
    assert project("show", "there").code == 0


def test_an_output_path_is_a_name_of_a_step_too(built: Project) -> None:
    """It is what one finds in a folder, or in the output of another tool."""
    [file, *_] = built.folder.rglob("numbers.txt")
    assert built("show", str(file.parent)).code == 0
    assert built("show", f"{file.parent.relative_to(built.folder)}/").code == 0
