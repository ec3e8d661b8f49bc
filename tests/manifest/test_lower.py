"""Older manifests mean what they always meant, and are told what is wrong with them in their own words."""

from __future__ import annotations

import pickle
from pathlib import Path
from textwrap import dedent

import pytest

from treadle.errors import ManifestError
from treadle.manifest import Execution, Manifest, load_manifest_path, read_manifest

VARIABLES = {"run.output": "/out", "run.id": "r1"}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bound(text: str, **overlay: object) -> Manifest:
    Path("m.yaml").write_text(dedent(text))
    return read_manifest("m.yaml", overlay, VARIABLES)


def complaints(text: str, **overlay: object) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        bound(text, **overlay)
    return [str(each) for each in caught.value.problems]


VERSION_3 = """\
    drtml_version: 3
    step_id: sums
    execution: {pattern: reduce_merge, entry: "package.module:run"}
    params_defaults: {corpus: /data, least: 5, share: 0.5, exact: true, names: [a, b], note: null}
    inputs: {rows: {backend: jsonl, path: "${params.corpus}/*.jsonl"}}
    outputs: {sums: {backend: parquet, path: "${run.output}/sums"}}
    reduce: {keys: [term], sums: [count]}
    mapping: {min_count: "${params.least}"}
    """
VERSION_4 = """\
    drtml_version: 4
    step_id: sums
    run: {type: reduce, entry: "package.module:run"}
    params:
      corpus: {type: str, default: /data}
      least: {type: int, default: 5}
      share: {type: float, default: 0.5}
      exact: {type: bool, default: true}
      names: {type: list, default: [a, b]}
      note: {type: str, default: null}
    inputs: {rows: {backend: jsonl, path: "${params.corpus}/*.jsonl"}}
    outputs: {sums: {backend: parquet, path: "${run.output}/sums"}}
    reduce: {keys: [term], sums: [count]}
    mapping: {min_count: "${params.least}"}
    """


def test_version_3_is_the_same_manifest_as_its_version_4() -> None:
    """All versions meet in one typed form, so nothing above needs to know them; so do their digests."""
    old, new = bound(VERSION_3), bound(VERSION_4)
    assert old.model_dump() == new.model_dump()
    assert old.digest == new.digest
    assert old.execution == Execution(3, pattern="reduce", entry="package.module:run")
    assert new.execution == Execution(4, pattern="reduce", entry="package.module:run")


def test_a_default_says_the_type_of_what_may_be_given() -> None:
    """Text of a command line becomes what the default is; nothing is guessed beyond that."""
    assert bound(VERSION_3, least="7").mapping == bound(VERSION_4, least=7).mapping
    [told] = complaints(VERSION_3, least="many")
    assert told.startswith("m.yaml:4:34: params_defaults.least: expected a whole number, ")
    assert told.endswith("found the given value 'many'; give another")


@pytest.mark.parametrize(
    ("head", "execution"),
    [
        ("execution: {mode: partition_loop}", Execution(2, mode="partition")),
        ("execution: {mode: mine}\nrunner: a.b.c", Execution(2, mode="mine", entry="a.b.c")),
        ("runner: a.b.c", Execution(2, mode="custom", entry="a.b.c")),
        ("drtml_version: 1\nrunner: a.b.c", Execution(2, mode="custom", entry="a.b.c")),
        ("drtml_version: 2\nexecution: {mode: reduce}", Execution(2, mode="reduce")),
        ("drtml_version: 3\nexecution: {entry: a.b:c}", Execution(3, pattern="custom", entry="a.b:c")),
    ],
)
def test_what_an_old_manifest_runs(head: str, execution: Execution) -> None:
    assert bound(f"{head}\nstep_id: x\n").execution == execution


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "drtml_version: 3\nstep_id: x\nrun: {type: mapping}\nexecution: {pattern: mapping}\n",
            "3:1: run: expected execution (the key run is of version 4, and this is version 3), found the",
        ),
        (
            "drtml_version: 3\nstep_id: x\nexecution: {patern: mapping}\n",
            "execution.patern: expected one of pattern, entry, found the unknown key 'patern'; did you mean",
        ),
        ("drtml_version: 3\nstep_id: x\nexecution: {pattern: ''}\n", "execution.pattern: expected text of"),
        (
            "drtml_version: 3\nstep_id: x\nexecution: [a]\n",
            "3:12: execution: expected a mapping, found a list",
        ),
        ("drtml_version: 3\nstep_id: x\n", "1:1: execution: expected pattern or entry, found nothing"),
        ("execution: {}\nstep_id: x\n", "1:1: execution: expected execution.mode or runner, found nothing"),
        ("runner: 5\nstep_id: x\n", "1:9: runner: expected text, found 5"),
        (
            "runner: a.b\nstep_id: x\nparams_defaults: {a: {b: 1}}\n",
            "3:22: params_defaults.a: expected a single value or a list of them, found a mapping",
        ),
        (
            "runner: a.b\nstep_id: x\nparams_defaults: {a: '${run.id}'}\n",
            "3:22: params_defaults.a: expected a value without placeholders, found '${run.id}'",
        ),
        (
            "drtml_version: 3\nstep_id: x\nexecution: {entry: a.b}\nexecutoin: {}\n",
            "did you mean 'execution'?",
        ),
        ("drtml_version: 3\nstep_id: x\nexecution: {entry: a.b}\nrunner: a.b\n", "the unknown key 'runner'"),
    ],
)
def test_a_mistake_is_told_at_its_place_in_the_words_of_its_version(text: str, told: str) -> None:
    """Whoever has an old file knows the old keys; the message must not speak of keys it does not have."""
    assert any(told in each for each in complaints(text)), complaints(text)


def test_rooms_above_complain_in_the_old_words_too() -> None:
    """They say `run.type`; the file says `execution.mode`."""
    problem = bound("execution: {mode: x}\nstep_id: x\n").problem("run.type", "a", "b")
    assert str(problem) == "m.yaml:1:13: execution.mode: expected a, found b"
    moved = pickle.loads(pickle.dumps(bound("runner: a.b\nstep_id: x\n")))
    assert moved.problem("run.entry", "a", "b").field == "runner"


def test_old_keys_may_come_in_by_an_include() -> None:
    Path("part.yaml").write_text("params_defaults: {n: 3}\n")
    Path("m.yaml").write_text(
        "include: [part.yaml]\nstep_id: x\nrunner: a.b\nmapping: {min_count: '${params.n}'}\n"
    )
    manifest = read_manifest("m.yaml", {}, VARIABLES)
    assert manifest.mapping is not None
    assert manifest.mapping.min_count == 3
    assert load_manifest_path("m.yaml").spelling.version == 2
