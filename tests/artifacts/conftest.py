"""Records of a toy step, and stores with builds in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import FileEntry, RecordBody, RecordHead, Store
from treadle.execution import StepRunner, StepSpec
from treadle.testing import temporary_store


@pytest.fixture
def new_head() -> Callable[..., RecordHead]:
    """A head; keyword arguments replace its parts."""

    def make(**changes: Any) -> RecordHead:
        parts: dict[str, Any] = {
            "build": "b1",
            "step_id": "a-1",
            "name": "a",
            "fingerprint": "f",
            "code_hash": "c",
            "deps": {"x-1": "b0"},
            "files": (FileEntry("a/b.txt", 3, "sha256:00"),),
            "location": "",
            "started": "2020-01-01T00:00:00+00:00",
            "seconds": 0.5,
        }
        return RecordHead(**{**parts, **changes})

    return make


@pytest.fixture
def body() -> RecordBody:
    return RecordBody(
        value={"tuple": [1]},
        config_text='{"dict":[]}',
        artifact_type="",
        attempts=1,
        run="r",
        host="h",
        treadle="0",
        commit="",
        dirty="",
        lock="",
    )


@pytest.fixture
def store() -> Iterator[Store]:
    with temporary_store() as store:
        yield store


Build = Callable[..., StepSpec]


@pytest.fixture
def build(store: Store) -> Build:
    """Run a step that writes `text` into `out.txt` and `deep/er.txt`; with `force` also when it is done."""

    def build(name: str, text: str = "text", *, force: bool = False, **options: Any) -> StepSpec:
        def fn(path: str) -> None:
            Path(path, "deep").mkdir()
            Path(path, "out.txt").write_text(text)
            Path(path, "deep", "er.txt").write_text(text)

        step = StepSpec(name, fn, output_path_prefix=store.prefix, **options)
        StepRunner().run([step], force=[name] if force else [])
        return step

    return build
