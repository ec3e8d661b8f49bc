"""Explained, a manifest says of each value what it finally is and who said so."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from treadle.manifest import (
    bind_manifest,
    explain_manifest,
    load_manifest_path,
    merged_params_from_manifest,
    read_manifest,
)
from treadle.manifest.yaml_text import write_flow

VARIABLES = {"run.output": "/out", "run.id": "r1"}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def explained(text: str, **overlay: object) -> list[str]:
    Path("m.yaml").write_text(dedent(text))
    document = load_manifest_path("m.yaml")
    params = merged_params_from_manifest(document, overlay)
    manifest = bind_manifest(document, params, VARIABLES)
    return [
        " ".join(line.split()) for line in explain_manifest(document, params, overlay, manifest).splitlines()
    ]


MANIFEST = """\
    drtml_version: 4
    step_id: x
    include: [part.yaml]
    params: {corpus: {type: path}, least: {type: int, default: 5}}
    run: {type: mapping}
    inputs: {a: {backend: jsonl, path: "${params.corpus}/*.jsonl", columns: [id, "no"]}}
    mapping: {min_count: "${params.least}"}
    transforms: [{name: one, deep: {at: [1, 2]}}]
    """


def test_each_value_has_its_origin() -> None:
    """A default, a file and line, an include, a param and whether it was given."""
    Path("part.yaml").write_text(
        "runtime: {seed: 7}\noutputs:\n  b: {backend: parquet, path: '${run.output}/b'}\n"
    )
    told = explained(MANIFEST, corpus="/data")
    for line in (
        "step_id: x # m.yaml:2",
        "entry: null # default",
        'path: "/data/*.jsonl" # m.yaml:6; ${params.corpus} given; declared at m.yaml:4',
        "min_count: 5 # m.yaml:7; ${params.least} default at m.yaml:4",
        "seed: 7 # part.yaml:1 <- m.yaml:3",
        "path: /out/b # part.yaml:3 <- m.yaml:3; ${run.output} of the run",
        'columns: [id, "no"] # m.yaml:6',
        "- {name: one, deep: {at: [1, 2]}} # m.yaml:8",
        "corpus: {type: path, default: /data} # given; declared at m.yaml:4",
        "least: {type: int, default: 5} # default at m.yaml:4",
    ):
        assert line in told


def test_a_merged_value_has_the_origin_that_won() -> None:
    Path("part.yaml").write_text("runtime: {seed: 1}\n")
    told = explained(
        "include: [part.yaml]\ndrtml_version: 4\nstep_id: x\nrun: {type: a}\nruntime: {seed: 2}\n"
    )
    assert "seed: 2 # m.yaml:5" in told


def test_an_older_manifest_is_shown_as_it_is_written_today() -> None:
    """With the new place of each old key, so that the file can be brought up to date by hand."""
    told = explained(
        "step_id: x\nexecution: {mode: reduce}\nparams_defaults: {least: 3}\n"
        "mapping: {min_count: '${params.least}'}\n",
        least=4,
    )
    assert told[:3] == [
        "# written in a version before 3 of the language; the same in version 4:",
        "# execution.mode -> run.type",
        "# params_defaults.least -> params.least.default",
    ]
    assert "type: reduce # m.yaml:2; as execution.mode" in told
    assert "least: {type: int, default: 4} # given; declared at m.yaml:3" in told
    assert "min_count: 4 # m.yaml:4; ${params.least} given; declared at m.yaml:3" in told


def test_what_looks_like_a_placeholder_stays_text() -> None:
    """`$${` was written to keep it from being filled; printed, it is written so again."""
    head = "drtml_version: 4\nstep_id: x\nrun: {type: a}\n"
    told = explained(head + "generate: {model: m, prompt: 'cost $${n}'}\n")
    assert 'prompt: "cost $${n}" # m.yaml:4' in told
    told = explained(
        head + "params: {p: {type: str}}\ngenerate: {model: m, prompt: '${params.p}'}\n", p="${q}"
    )
    assert not [line for line in told if line.startswith("params")]
    Path("again.yaml").write_text(head + 'generate: {model: m, prompt: "$${q}"}\n')
    again = read_manifest("again.yaml", {}, VARIABLES).generate
    assert again is not None
    assert again.prompt == "${q}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("null", '"null"'),
        ("a b", '"a b"'),
        ("x\x85\u2028\x7f", '"x\\u0085\\u2028\\u007f"'),
        ("\U0010ffff\n", '"\U0010ffff\\n"'),
        (1e-5, "1e-05"),
        (float("-inf"), "-.inf"),
        (16**900, hex(16**900)),
        ({"no way": (1, None, True)}, '{"no way": [1, null, true]}'),
    ],
)
def test_values_are_written_so_that_they_are_read_back(value: object, text: str) -> None:
    assert write_flow(value) == text  # type: ignore[arg-type]
