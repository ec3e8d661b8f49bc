"""What a run would find before it begins, which `manifest plan` tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.checkpointed import outputs_of, session_of, units_of
from treadle.errors import ArtifactError
from treadle.storage import Checkpoint, OutputSpec, WorkUnit
from treadle.storage.outlook import Kept, kept_in, present_at

UNITS = units_of(3)


def do(folder: Path, units: list[WorkUnit], phase: str = "main", depends: str = "") -> None:
    """Do some units and stop without a commit."""
    with session_of(folder) as session:
        for unit in units:
            with session.staging.open_unit(unit, phase, depends) as writer:
                writer.write("rows", [{"id": unit.index}])
                session.accept(writer.finish({}))


def kept(folder: Path, fingerprint: str = "f") -> Kept | None:
    specs = {**outputs_of(folder), "spill": OutputSpec("arrow", str(folder / "spill"))}
    identities = [each.identity for each in UNITS]
    return kept_in(Checkpoint(str(folder / ".checkpoint"), fingerprint), specs, identities)


def identities_of(*units: WorkUnit) -> frozenset[str]:
    return frozenset(each.identity for each in units)


def test_units_that_are_done_are_told_by_phase(tmp_path: Path) -> None:
    """Those of an input that is not read any more are left out, and those whose file is gone."""
    assert kept(tmp_path) is None
    do(tmp_path, [*UNITS[:2], *units_of(1, version="gone")])
    do(tmp_path, UNITS[:1], "pre-pass")
    assert kept(tmp_path) == Kept(
        True, {"main": identities_of(*UNITS[:2]), "pre-pass": identities_of(UNITS[0])}
    )
    for file in (tmp_path / ".rows.units").glob("part-00001-*"):
        file.unlink()
    found = kept(tmp_path)
    assert found is not None
    assert found.units["main"] == identities_of(UNITS[0])


def test_single_rows_that_are_kept_are_counted(tmp_path: Path) -> None:
    """Of work of which rows are worth keeping, no unit may be done yet."""
    with session_of(tmp_path) as session:
        rows = session.row_journal()
        assert rows is not None
        for key in ("one", "other", "one"):
            rows.add(key, 1)
    assert kept(tmp_path) == Kept(True, {}, rows=2)


def test_units_of_another_recipe_are_told_apart(tmp_path: Path) -> None:
    do(tmp_path, UNITS)
    found = kept(tmp_path, "another")
    assert found is not None
    assert not found.same_recipe


def test_units_that_depend_on_more_than_their_content_are_told_as_such(tmp_path: Path) -> None:
    """What was done with one side input never counts together with what was done with another."""
    do(tmp_path, UNITS[:1], depends="one")
    do(tmp_path, UNITS[1:], depends="another")
    assert kept(tmp_path) == Kept(True, {"main": identities_of(*UNITS[1:])}, frozenset({"main"}))


def test_a_unit_counts_only_with_what_it_depended_on(tmp_path: Path) -> None:
    do(tmp_path, UNITS[:1], depends="one")
    with session_of(tmp_path) as session:
        assert session.finished("main", UNITS[0], "another") is None
        assert session.finished("main", UNITS[0]) is None
        assert session.finished("main", UNITS[0], "one") is not None


@pytest.mark.parametrize("there", ["file", "folder", "folder of that name", "link to nowhere"])
def test_what_is_no_output_is_told(tmp_path: Path, there: str) -> None:
    path = tmp_path / "rows"
    if there == "file":
        path.touch()
    elif there == "link to nowhere":
        path.symlink_to("nowhere")
    else:
        (path / ("x" if there == "folder" else "_manifest.json")).mkdir(parents=True)
    found = present_at(OutputSpec("jsonl", str(path)))
    assert found is not None
    assert found.manifest is None


def test_nothing_and_an_empty_folder_are_no_output(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name in ("empty", "nothing", "file/below"):
        assert present_at(OutputSpec("jsonl", str(tmp_path / name))) is None


def test_a_place_that_cannot_be_looked_at_is_no_place_where_something_is(tmp_path: Path) -> None:
    """Whether there is an output remains unknown: here the name is longer than any file may have."""
    with pytest.raises(ArtifactError, match=r"cannot tell what is at .*/n{300}: .*; see that this user may"):
        present_at(OutputSpec("jsonl", str(tmp_path / ("n" * 300))))
