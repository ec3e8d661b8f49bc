"""`killed_checkpoint.py FOLDER MODE`: kill a run with a checkpoint at each operation, and go on after it."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.storage.checkpointed import run, units_of
from tests.storage.killing import ends_before
from treadle.storage import Dataset, read_table
from treadle.storage.output_manifest import MANIFEST_NAME

OPERATIONS = ("rename", "replace", "mkdir", "unlink", "rmdir", "open", "close", "link", "fsync")
UNITS = units_of(2)


def main() -> None:
    """One child for each operation; fails by an assertion."""
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    # A killed process loses nothing that the system has taken; waiting for the disk is most of the time.
    os.fsync = lambda fd: None
    run(folder / "undisturbed", UNITS, mode)
    expected = seen(folder / "undisturbed")
    resumed_after: set[int] = set()
    for operation in count():
        place = folder / f"{operation:04d}"
        ended = ends_before(operation, OPERATIONS, partial(run, place, UNITS, mode))
        whole = (place / "rows").exists() and (place / "table").exists()
        committed = whole and not (place / ".checkpoint" / "head.json").exists()
        if not committed:
            done, _ = run(place, UNITS, mode)
            resumed_after.add(done)
        assert seen(place) == expected, (operation, committed)
        if not committed:
            assert {each.name for each in place.iterdir()} == {"rows", "table", "quarantine.jsonl"}, operation
        shutil.rmtree(place)
        if ended:
            assert operation > 50, "the patches did not count"
            assert resumed_after == {0, 1, 2}
            return


def seen(place: Path) -> dict[str, Any]:
    """What a reader sees: rows and bytes of the files, whatever the folder of the publication is called."""
    found: dict[str, Any] = {
        f"{each.parent.relative_to(place).parts[0]}/{each.name}": each.read_bytes()
        for each in place.rglob("part-*")
        if not each.relative_to(place).parts[0].startswith(".") and each.name != MANIFEST_NAME
    }
    found["quarantine"] = (place / "quarantine.jsonl").read_bytes()
    for name, backend in (("rows", "jsonl"), ("table", "parquet")):
        found[name] = read_table(Dataset(backend, str(place / name))).to_pylist()
    return found


if __name__ == "__main__":
    main()
