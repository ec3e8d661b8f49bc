"""The three steps together: a good manifest becomes a typed one, a bad one tells everything at once."""

from __future__ import annotations

import fnmatch
import pickle
from pathlib import Path
from textwrap import dedent

import pydantic
import pytest

from treadle.errors import ManifestError
from treadle.manifest import (
    bind_manifest,
    load_manifest_path,
    merged_params_from_manifest,
    read_manifest,
)
from treadle.manifest.model import Manifest

VARIABLES = {"run.output": "/out", "run.id": "r1"}
PARTITION = """\
    drtml_version: 4
    step_id: corpus.partition
    include: [fragments/storage.yaml, {path: fragments/metrics.yaml, at: metrics}]
    params:
      corpus: {type: path, help: "folder of shards"}
      min_count: {type: int, default: 5, min: 1}
    run: {type: partition}
    inputs: {documents: {backend: jsonl, path: "${params.corpus}/*.jsonl.gz", columns: [id, text]}}
    transform: {name: tokenize, lowercase: true, normalize: NFC, keep: [id]}
    mapping: {min_count: "${params.min_count}"}
    errors: {on_bad_row: quarantine, max_bad_fraction: 1}
    runtime: {metrics_enabled: true, seed: 7}
    """


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fragments").mkdir()
    Path("fragments/storage.yaml").write_text(
        'outputs: {tokens: {backend: parquet, path: "${run.output}/tokens", compression: zstd}}\n'
    )
    Path("fragments/metrics.yaml").write_text('log: "${run.output}/metrics.jsonl"\n')


def saved(text: str, name: str = "m.yaml") -> str:
    Path(name).write_text(dedent(text))
    return name


def bound(text: str, **overlay: object) -> Manifest:
    return read_manifest(saved(text), overlay, VARIABLES)


def complaints(text: str, **overlay: object) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        bound(text, **overlay)
    assert caught.value.exit_code == 2
    return [str(each) for each in caught.value.problems]


def _literally(pattern: str) -> str:
    """The pattern with `*` as its only wildcard."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def minimal(rest: str = "") -> str:
    return f"drtml_version: 4\nstep_id: x\nrun: {{type: mapping}}\n{dedent(rest)}"


def test_a_whole_manifest_is_read_typed_and_filled() -> None:
    """The main path: includes, params, placeholders, defaults."""
    manifest = bound(PARTITION, corpus="/data", min_count="2")
    assert manifest.run.type == "partition"
    assert manifest.inputs["documents"].path == "/data/*.jsonl.gz"
    assert manifest.inputs["documents"].columns == ("id", "text")
    assert manifest.outputs["tokens"].compression == "zstd"
    assert manifest.transform is not None
    assert manifest.transform.name == "tokenize"
    assert manifest.transform.options == {"lowercase": True, "normalize": "NFC", "keep": ("id",)}
    assert manifest.mapping is not None
    assert manifest.mapping.min_count == 2
    assert manifest.reduce is None
    assert manifest.parallelism.batch_rows is None
    assert manifest.errors.max_bad_fraction == 1.0
    assert manifest.metrics.log == "/out/metrics.jsonl"


def test_the_single_steps_give_what_reading_in_one_gives() -> None:
    """Whoever needs to look between the steps must not get another manifest."""
    path = saved(PARTITION)
    document = load_manifest_path(path)
    params = merged_params_from_manifest(document, {"corpus": "/data"})
    assert bind_manifest(document, params, VARIABLES) == read_manifest(path, {"corpus": "/data"}, VARIABLES)


def test_the_smallest_manifest_has_defaults_for_everything_else() -> None:
    """What is not written has one documented meaning."""
    manifest = bound(minimal())
    assert (manifest.errors.on_bad_row, manifest.runtime.seed, manifest.inputs) == ("fail", 0, {})


def test_a_manifest_cannot_be_changed_and_survives_pickling() -> None:
    """It travels to workers, and nobody may alter it on the way."""
    manifest = bound(PARTITION, corpus="/data")
    with pytest.raises(pydantic.ValidationError):
        manifest.step_id = "other"
    copy = pickle.loads(pickle.dumps(manifest))
    assert copy == manifest
    assert copy.problem("run.type", "a", "b") == manifest.problem("run.type", "a", "b")


@pytest.mark.parametrize(
    ("rest", "place", "expected", "found"),
    [
        ("inptus: {}", "4:1 inptus", "one of *", "the unknown key 'inptus'; did you mean 'inputs'?"),
        (
            "inputs: {d: {backend: jsonl, path: x, missing: rejekt}}",
            "4:48 inputs.d.missing",
            "one of reject, null",
            "'rejekt'; did you mean 'reject'?",
        ),
        ("inputs: {d: {backend: jsonl}}", "4:10 inputs.d.path", "a value (the key is required)", "nothing"),
        (
            "inputs: {d: {backend: jsonl, path: ''}}",
            "4:36 inputs.d.path",
            "text of at least 1 character(s)",
            "''",
        ),
        ("inputs: {d: {backend: jsonl, path: x, columns: id}}", "4:48 inputs.d.columns", "a list", "'id'"),
        ("inputs: {d: {backend: jsonl, path: x, columns: [a, 1]}}", "4:52 inputs.d.columns[1]", "text", "1"),
        (
            "includes: [a.yaml]",
            "4:1 includes",
            "one of *, include, *",
            "the unknown key 'includes'; did you mean 'include'?",
        ),
        ("inputs: [x]", "4:9 inputs", "a mapping", "a list"),
        ("mapping: 3", "4:10 mapping", "a mapping", "3"),
        ("mapping: {min_count: 0}", "4:22 mapping.min_count", "at least 1", "0"),
        ("mapping: {min_count: '5'}", "4:22 mapping.min_count", "a whole number", "'5'"),
        ("mapping: {min_count: 2.0}", "4:22 mapping.min_count", "a whole number", "2.0"),
        ("mapping: {min_count: true}", "4:22 mapping.min_count", "a whole number", "true"),
        ("mapping: {min_count: null}", "4:22 mapping.min_count", "a whole number", "null"),
        ("errors: {max_bad_fraction: 1.5}", "4:28 errors.max_bad_fraction", "at most 1", "1.5"),
        ("errors: {max_bad_fraction: .nan}", "4:28 errors.max_bad_fraction", "a finite number", "nan"),
        ("embed_train: {learning_rate: 0}", "4:30 embed_train.learning_rate", "more than 0", "0"),
        ("embed_train: {learning_rate: fast}", "4:30 embed_train.learning_rate", "a number", "'fast'"),
        ("runtime: {metrics_enabled: yes}", "4:28 runtime.metrics_enabled", "true or false", "'yes'"),
        (
            "runtime: {metrics_enabled: True}",
            "4:28 runtime.metrics_enabled",
            "true or false",
            "'True'; did you mean 'true'?",
        ),
        ("parallelism: {backend: threads}", "4:24 parallelism.backend", "one of inprocess, *", "'threads'"),
        ("transform: {lowercase: true}", "4:1 transform.name", "a value (the key is required)", "nothing"),
        ("reduce: {keys: [], sums: [n]}", "4:16 reduce.keys", "a list of at least 1 item(s)", "a list"),
        (
            "parallelism: {batch_rows: '${params.nope}'}",
            "4:27 parallelism.batch_rows",
            "one of run.id, run.output",
            "'${params.nope}'",
        ),
        ("step_id: y", "4:1 step_id", "each key once", "'step_id' again (first on line 2)"),
    ],
)
def test_each_kind_of_mistake_is_told_in_plain_words(
    rest: str, place: str, expected: str, found: str
) -> None:
    """Place, field, expected, found, nearest: enough to repair it without reading the reference."""
    [complaint] = complaints(minimal(rest))
    place, field = place.split()
    assert fnmatch.fnmatchcase(
        complaint, _literally(f"m.yaml:{place}: {field}: expected {expected}, found {found}")
    )


def test_missing_top_level_keys_are_told_together() -> None:
    """An almost empty manifest should say all that it lacks."""
    fields = [each.split(": ")[1] for each in complaints("inputs: {}\n")]
    assert fields == ["drtml_version", "run", "step_id"]


@pytest.mark.parametrize("version", ["0", "5", "'4'", "4.0", "true", "[4]", "null"])
def test_another_version_is_refused_alone(version: str) -> None:
    """Keys of another version are not known here, so complaints about them would mislead."""
    found = complaints(f"drtml_version: {version}\nexecution: {{mode: x}}\n")
    assert len(found) == 1
    assert found[0].startswith(
        "m.yaml:1:16: drtml_version: expected a known version of the language (1, 2, 3, 4), found "
    )


def test_an_error_in_a_fragment_points_into_the_fragment() -> None:
    """And it says through which include the fragment came in."""
    Path("fragments/metrics.yaml").write_text("logg: x\n")
    assert complaints(PARTITION, corpus="/data") == [
        (
            "fragments/metrics.yaml:1:1: metrics.logg: expected one of interval, log, prometheus, trace, "
            "found the unknown key 'logg'; "
            "did you mean 'log'? (included by m.yaml:3)"
        )
    ]


def test_everything_wrong_in_several_files_is_told_at_once_by_place() -> None:
    """YAML, params, placeholders and schema are checked in one go."""
    Path("fragments/storage.yaml").write_text("outputs:\n  t: {backend: '', path: '${run.out}'}\n  t: {}\n")
    Path("fragments/metrics.yaml").write_text("log: [\n")
    text = PARTITION.replace("seed: 7", "seed: -1").replace("normalize: NFC", "name: again")
    assert [each.split(": expected")[0] for each in complaints(text, min_count="x")] == [
        "m.yaml:5:3: params.corpus",
        "m.yaml:6:3: params.min_count",
        "m.yaml:9:46: transform.name",
        "m.yaml:12:40: runtime.seed",
        "fragments/metrics.yaml:2:1",
        "fragments/storage.yaml:2:16: outputs.t.backend",
        "fragments/storage.yaml:2:26: outputs.t.path",
        "fragments/storage.yaml:3:3: outputs.t",
    ]


def test_a_lost_file_does_not_make_other_things_missing() -> None:
    """What the unreadable file may hold cannot be called missing or unknown."""
    text = """\
        drtml_version: 4
        include: [gone.yaml]
        mapping: {min_count: "${params.min_count}"}
        inputs: {d: {backend: jsonl, pth: x}}
        """
    assert [each.split(": expected")[0] for each in complaints(text, min_count="3")] == [
        "m.yaml:2:11: include[0]",
        "m.yaml:4:30: inputs.d.pth",
    ]


def test_a_param_with_a_problem_causes_no_second_one() -> None:
    """One cause, one message: the places where the param is used are fine."""
    text = minimal('params: {n: {type: int}}\nmapping: {min_count: "${params.n}", max_terms: "${params.n}"}')
    assert [each.split(": expected")[0] for each in complaints(text, n="many")] == ["m.yaml:4:10: params.n"]


def test_a_value_from_a_param_is_blamed_where_it_is_used() -> None:
    """The model's bounds hold for params too."""
    text = minimal('params: {n: {type: int}}\nmapping: {min_count: "${params.n}"}')
    assert complaints(text, n=0) == ["m.yaml:5:22: mapping.min_count: expected at least 1, found 0"]


def test_the_digest_knows_the_content_only() -> None:
    """Comments, order of keys, layout over files and params must not change the identity of a manifest."""
    plain = bound(minimal("runtime: {seed: 1}\nmapping: {min_count: 2}"))
    Path("part.yaml").write_text("mapping: {min_count: 0x2}\n")
    moved = bound(minimal("# a comment\ninclude: [part.yaml]\nruntime:\n  seed: 1\n"))
    assert plain.digest == moved.digest
    assert bound(minimal("runtime: {seed: 2}\nmapping: {min_count: 2}")).digest != plain.digest
    digests = {bound(PARTITION, corpus=corpus).digest for corpus in ("/a", "/b")}
    assert len(digests) == 1


def test_other_rooms_can_complain_at_a_field() -> None:
    """Run types and transforms are checked above, with the same kind of message."""
    manifest = bound(minimal("transform:\n  name: tokenize\n  lowercas: true\n"))
    problem = manifest.problem("transform.lowercas", "lowercase", "a new option", "lowercase")
    assert str(problem) == (
        "m.yaml:6:3: transform.lowercas: expected lowercase, found a new option; did you mean 'lowercase'?"
    )
    assert manifest.problem("inputs.rows", "an input", "nothing").line == 1
