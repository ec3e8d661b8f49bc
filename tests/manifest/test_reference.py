"""The language reference keeps step with the model: every key, every default, and examples that load."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import pydantic
import pytest

from tests.manifest.names import FORMATS, RUN_TYPES
from treadle.manifest import read_manifest, starters
from treadle.manifest.model import Manifest
from treadle.manifest.scalars import read_word, write_word
from treadle.processing.runners import check_manifest, known_patterns
from treadle.processing.transforms import find_row_transform, find_transform, known_transforms
from treadle.storage.formats.backends import known_formats
from treadle.storage.formats.csv_options import CsvOptions
from treadle.storage.formats.postgres_options import PostgresOptions
from treadle.storage.formats.text_options import TextOptions

# Tests of plugins register more.
OUR_TRANSFORMS = [
    name
    for name in known_transforms()
    if (find_row_transform(name) or find_transform(name)).__module__.startswith("treadle.")
]

REFERENCE = Path(__file__).parents[2] / "docs/manifest.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def models_in(kind: object) -> Iterator[type[pydantic.BaseModel]]:
    """The models that a type is made of, itself included."""
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from models_in(field.annotation)
    for member in typing.get_args(kind):
        yield from models_in(member)


FIELDS = sorted(
    {
        (model.__name__, name): field
        for model in models_in(Manifest)
        for name, field in model.model_fields.items()
    }.items()
)

KINDS = [
    CsvOptions,
    PostgresOptions,
    TextOptions,
    *(find_row_transform(name) or find_transform(name) for name in OUR_TRANSFORMS),
]
OPTIONS = {field.name for kind in KINDS if kind is not None for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ("owner", "field"), FIELDS, ids=lambda each: ".".join(each) if isinstance(each, tuple) else ""
)
def test_every_field_is_named_with_its_default(
    owner: tuple[str, str], field: pydantic.fields.FieldInfo
) -> None:
    """A key that is not in the reference does not exist for its readers."""
    defaults = [row[2] for row in ROW.findall(REFERENCE.read_text()) if row[0] == owner[1]]
    assert defaults
    if field.is_required():
        assert "required" in defaults
    elif isinstance(field.default, (bool, int, float, str)):
        assert write_word(field.default) in defaults or field.default in [
            read_word(each) for each in defaults
        ]


def test_every_option_of_a_transform_or_format_is_named() -> None:
    """What is learnt only from an error message is not documented."""
    assert {row[0] for row in ROW.findall(REFERENCE.read_text())} >= OPTIONS


def test_every_transform_is_named() -> None:
    """A transform that is not in the reference does not exist for its readers."""
    text = REFERENCE.read_text()
    assert not [name for name in OUR_TRANSFORMS if f"`{name}`" not in text]


def test_the_reference_names_no_key_that_does_not_exist() -> None:
    """A key that was renamed must not live on in the reference."""
    known = {name for (_, name), _ in FIELDS} | OPTIONS | {"include"}
    assert {row[0] for row in ROW.findall(REFERENCE.read_text())} <= known


def test_the_names_that_editors_suggest_are_the_registered_ones() -> None:
    """Registries know more once plugins are loaded; every built-in name has to be suggested."""
    assert {*known_formats()} >= {*FORMATS}
    assert {*known_patterns()} >= {*RUN_TYPES} - {"custom"}
    assert {*starters()} == {*RUN_TYPES}


EXAMPLES = [
    each
    for each in re.findall(r"```yaml\n(.*?)```", REFERENCE.read_text(), re.DOTALL)
    if {"drtml_version:", "step_id:"} <= {*each.split()}
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_whole_example_is_fit_to_run(example: str, tmp_path: Path) -> None:
    """Readers start by copying one."""
    (tmp_path / "manifest.yaml").write_text(example)
    manifest = read_manifest(tmp_path / "manifest.yaml", {"corpus": "/data"}, {"run.output": "/out"})
    check_manifest(manifest)
    assert [each.path.startswith("/data/") for each in manifest.inputs.values()] == [True]
    assert {each.path.startswith("/out/") for each in manifest.outputs.values()} == {True}
