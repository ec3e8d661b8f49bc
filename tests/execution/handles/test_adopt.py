"""Data that exists already is a step like others, and is never computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import Artifact
from treadle.errors import ArgumentError
from treadle.execution import StepRunner, lower, step
from treadle.execution.handles.adopt import adopt
from treadle.execution.handles.artifact_step import ArtifactStep, materialized_config


@dataclass(frozen=True)
class Corpus(Artifact):
    language: str
    pages: int = 0


@step
def letters(corpus: Corpus) -> tuple[str, int]:
    return corpus.language, len(Path(corpus / "text.txt").read_text())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "text.txt").write_text("abc")
    return folder


def test_what_depends_on_it_gets_an_artifact_at_its_source(tmp_path: Path, data: Path) -> None:
    handle = letters(adopt("corpus", "2026.02.03", data, Corpus, {"language": "en"}))
    spec = lower(handle, tmp_path / "store")
    adopted = spec.deps[0]
    assert (adopted.id, adopted.source) == ("corpus@2026.02.03", str(data))
    assert adopted.output_path == f"{tmp_path}/store/corpus/2026.02.03"
    results = StepRunner().run([spec])
    assert results[spec.id] == ("en", 3)
    assert results[adopted.id] == Corpus(str(data), "en")
    assert (data / "text.txt").read_text() == "abc"


def test_where_it_lies_is_no_identity_and_what_is_known_of_it_is(tmp_path: Path, data: Path) -> None:
    one = adopt("corpus", "2026.02.03", data, config={"n": 1})
    assert adopt("corpus", "2026.02.03", tmp_path, config={"n": 1}).hash_id == one.hash_id
    assert adopt("corpus", "2026.02.03", data, config={"n": 2}).hash_id != one.hash_id


def test_an_explicit_step_sees_the_source(tmp_path: Path, data: Path) -> None:
    source = adopt("corpus", "dev", data)
    reader: ArtifactStep[Artifact] = ArtifactStep(
        name="r", version="dev", deps=[source], run=print, build_config=lambda ctx: ctx.artifact_path(source)
    )
    assert materialized_config(reader, tmp_path) == str(data)


def test_data_that_is_not_there_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    handle = letters(adopt("corpus", "dev", tmp_path / "gone"))
    with pytest.raises(ArgumentError, match=f"step 'corpus': the adopted data is not there: {tmp_path}/gone"):
        lower(handle, tmp_path)
    assert lower(adopt("corpus", "dev", "s3://bucket/x"), tmp_path).source == "s3://bucket/x"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "1"}, "version: expected a day"),
        ({"version": None}, "version: expected a day"),
        ({"source": ""}, "source: expected a path or a URL"),
        ({"source": 3}, "source: expected a path or a URL"),
        ({"name": "../x"}, "step name"),
        ({"artifact_type": int}, "artifact_type: expected Artifact"),
        ({"artifact_type": Corpus}, "expected the fields of Corpus, got none of the name language"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        adopt(**{"name": "c", "version": "dev", "source": "/x", **options})
