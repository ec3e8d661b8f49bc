"""Templates: the bare names of columns, and nothing that reaches further."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import ManifestError
from treadle.manifest import Manifest, read_manifest
from treadle.processing.prompts import Template, read_template


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    path: Path = tmp_path_factory.mktemp("prompts") / "manifest.yaml"
    path.write_text("drtml_version: 4\nstep_id: s\nrun: {type: generate}\ngenerate: {model: m, prompt: p}\n")
    return read_manifest(path, {}, {})


def test_fields_are_filled_and_braces_doubled(manifest: Manifest) -> None:
    template = read_template(manifest, "generate.prompt", "{{{name}}}: {name} of {home town}, {age} {tags}")
    assert template.columns == ("age", "home town", "name", "tags")
    row = {"name": "{x}", "home town": "Bergen", "age": 7, "tags": ["é", 1]}
    assert template.fill(row) == '{{x}}: {x} of Bergen, 7 ["é", 1]'


@given(st.text())
def test_text_without_braces_is_itself(text: str) -> None:
    plain = text.replace("{", "").replace("}", "")
    assert Template(((plain, None),)).fill({}) == plain


@given(st.text(alphabet="{}ab.[]!: _0"))
def test_whatever_is_accepted_reads_columns_only(manifest: Manifest, text: str) -> None:
    """No template may look into a value: rows come from anywhere."""
    template = accepted(manifest, text)
    if template is None:
        return
    for column in template.columns:
        assert column.strip() == column
        assert not set(column) & set("{}.[]!:")
    filled = template.fill(dict.fromkeys(template.columns, "<>"))
    assert filled.count("<>") == sum(column is not None for _, column in template.parts)


def accepted(manifest: Manifest, text: str) -> Template | None:
    """The template, or None when it is refused."""
    try:
        return read_template(manifest, "generate.prompt", text)
    except ManifestError:
        return None
