"""`killed_writer.py FOLDER MODE kept|not-kept`: kill a writer at each operation, and see what is left."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.storage.killing import ends_before
from tests.storage.publishing import publish, read

OPERATIONS = ("rename", "replace", "mkdir", "unlink", "rmdir", "open", "close", "link", "fsync")


def main() -> None:
    """One child for each operation; fails by an assertion."""
    folder, mode, kept = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "kept"
    for operation in count():
        place = folder / f"{operation:03d}"
        keep = place / "kept" if kept else None
        if mode != "error":
            publish(place / "out", mode, [1])
        ended = ends_before(operation, OPERATIONS, partial(publish, place / "out", mode, [2], keep=keep))
        _check(place, mode, keep, ended=ended)
        shutil.rmtree(place)
        if ended:
            assert operation > 5, "the patches did not count"
            return


def _check(place: Path, mode: str, keep: Path | None, *, ended: bool) -> None:
    old: list[int] | None = None if mode == "error" else [1]
    new = [1, 2] if mode == "append" else [2]
    found = read(place / "out") if (place / "out").exists() else None
    assert found == new if ended else found in (old, new)
    if keep is not None and (keep / "staged-0").exists():
        assert (keep / "staged-0").read_bytes() in (b"2\n", b"")
    if mode != "error":
        publish(place / "out", mode, [2], keep=keep)
        twice = mode == "append" and keep is None and found == new
        assert read(place / "out") == ([1, 2, 2] if twice else new)
    elif found is None:
        publish(place / "out", mode, [2], keep=keep)
        assert read(place / "out") == [2]
    _check_clean(place)


def _check_clean(place: Path) -> None:
    """Nothing but the output, in which is nothing but what the manifest names."""
    publish(place / "out", "append", [4])
    assert {each.name for each in place.iterdir()} <= {"out", "kept"}
    published = publish(place / "out", "overwrite", [3])
    [folder] = {each.name.partition("/")[0] for each in published.files}
    assert {each.name for each in (place / "out").iterdir()} == {folder, "_manifest.json"}


if __name__ == "__main__":
    main()
