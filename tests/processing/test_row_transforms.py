"""Transforms of rows from outside, and the code that decides what a manifest's transforms do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from treadle.domain.row_function import MapRows
from treadle.domain.row_step import Record, RowStep, Stepped
from treadle.domain.transforms import TokenizeTransform
from treadle.errors import ArgumentError
from treadle.manifest import read_manifest
from treadle.processing.transforms import known_transforms, register_row_transform, transform_code


@dataclass(frozen=True)
class Number:
    """A plugin's step: it knows records only."""

    into: str = "number"

    def step(self, function: Callable[..., object] | None = None) -> RowStep:
        assert function is None, "it has no entry"
        return RowStep(records=self._records)

    def _records(self, rows: Sequence[Record]) -> Stepped:
        return Stepped([{**row, self.into: len(row)} for row in rows], range(len(rows)))


@pytest.fixture
def number() -> None:
    register_row_transform("from outside", Number)


def body(steps: str) -> str:
    return f"""
        run: {{type: transform}}
        inputs:
          a: {{backend: jsonl, path: "${{params.in}}/*.jsonl"}}
        transforms: {steps}
        outputs:
          rows: {{backend: jsonl, path: rows}}
    """


@pytest.mark.usefixtures("number")
def test_a_step_from_outside(workshop: Any) -> None:
    workshop.rows("a", [{"text": "A"}, {"text": "B"}])
    workshop.run(body("[{name: from outside, into: size}, {name: normalize, lowercase: true}]"))
    assert workshop.read("rows", "jsonl") == [{"text": "a", "size": 1}, {"text": "b", "size": 1}]


def test_registering_what_is_no_step() -> None:
    with pytest.raises(ArgumentError, match="'nothing' must be a dataclass with the method step"):
        register_row_transform("nothing", int)  # type: ignore[type-var]
    with pytest.raises(ArgumentError, match="already registered"):
        register_row_transform("map", Number)
    assert register_row_transform("map", MapRows) is MapRows


def test_the_code_of_the_transforms_of_a_manifest(tmp_path: Path) -> None:
    """Checkpoints hang on it; a name that nobody registered is the business of the check."""
    path = tmp_path / "m.yaml"
    path.write_text(
        "drtml_version: 4\nstep_id: s\nrun: {type: transform}\ntransform: {name: tokenize}\n"
        "transforms: [{name: map, entry: 'a:b'}, {name: unheard}]\n"
    )
    assert transform_code(read_manifest(path, {}, {})) == (TokenizeTransform, MapRows)


def test_a_chain_may_name_both_kinds() -> None:
    assert {"map", "sample", "tokenize", "embed"} <= {*known_transforms()}
