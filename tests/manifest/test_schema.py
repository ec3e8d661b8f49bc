"""The shipped JSON Schema: current, valid, and of one mind with the reader."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from tests.manifest.names import ROOT, SHIPPED, built
from treadle.manifest import read_starter, shipped_schema, starters
from treadle.manifest.places import Place, plain
from treadle.manifest.problems import Problems
from treadle.manifest.yaml_loader import read_tree

VALIDATOR = jsonschema.Draft202012Validator(json.loads(shipped_schema()))
GOOD = "drtml_version: 4\nstep_id: x\nrun: {type: mapping}\n"


def examples() -> dict[str, str]:
    """Every manifest that a reader may copy."""
    found = {}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for at, text in enumerate(
            re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        ):
            found[f"{page.name}-{at}"] = text
    for path in (ROOT / "src" / "treadle" / "experiment" / "manifests").glob("*.yaml"):
        found[path.name] = path.read_text()
    found |= {f"new-{each}": read_starter(each, each) for each in starters()}
    return {name: text for name, text in found.items() if "drtml_version" in text}


def violations(text: str) -> list[str]:
    problems = Problems()
    tree = read_tree(text, Place("m.yaml", 1, 1), problems)
    problems.raise_any()
    assert tree is not None
    # Through JSON, where a tuple is a list.
    return [each.message for each in VALIDATOR.iter_errors(json.loads(json.dumps(plain(tree))))]


def test_the_shipped_schema_is_what_the_model_and_the_reference_give() -> None:
    """It is written anew by `python tests/manifest/names.py`."""
    assert built() == SHIPPED.read_text()


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(shipped_schema()))


def test_every_key_of_the_language_is_described() -> None:
    """An editor shows the words of the reference."""
    schema = json.loads(shipped_schema())
    silent = [
        f"{name}.{key}"
        for name, definition in {"Manifest": schema, **schema["$defs"]}.items()
        for key, each in definition.get("properties", {}).items()
        if "description" not in each
    ]
    assert not silent


@pytest.mark.parametrize("name", list(examples()))
def test_an_example_fits(name: str) -> None:
    assert not violations(examples()[name])


@pytest.mark.parametrize(
    "rest",
    [
        "inptus: {}",
        "runtime: {seed: fast}",
        "runtime: {seed: -1}",
        "inputs: {a: {backend: jsonl}}",
        "inputs: {a: {backend: jsonl, path: x, columns: id}}",
        "parallelism: {backend: threads}",
        "errors: {max_bad_fraction: 2}",
        "params: {n: {type: number}}",
        "params: {n: {default: 1}}",
        "transforms: [{lowercase: true}]",
        "metrics: {prometheus: {mode: post}}",
        "reduce: {keys: []}",
    ],
)
def test_a_mistake_does_not_fit(rest: str) -> None:
    assert not violations(GOOD)
    assert violations(f"{GOOD}{rest}\n")


@pytest.mark.parametrize(
    "rest",
    [
        "runtime: {seed: '${params.seed}', metrics_enabled: '${params.on}'}",
        "inputs: {a: {backend: '${params.b}', path: x, columns: '${params.columns}'}}",
        "cluster: {clusters: '${params.k}'}\ninclude: [a.yaml, {path: b.yaml, at: metrics}]",
        "errors: {max_bad_fraction: '${params.f}'}",
    ],
)
def test_a_placeholder_may_stand_for_a_value_of_any_type(rest: str) -> None:
    assert not violations(f"{GOOD}{rest}\n")


def test_what_an_include_brings_need_not_be_in_the_file() -> None:
    assert violations("step_id: x\n")
    assert not violations("include: [a.yaml]\nstep_id: x\n")
