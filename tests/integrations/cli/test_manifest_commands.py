"""`treadle manifest`: what its commands say, and that they change nothing that they were not asked to."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integrations.cli.conftest import Called
from treadle.integrations.cli.app import main
from treadle.manifest import load_manifest_path, starters
from treadle.manifest.places import plain

GOOD = """\
drtml_version: 4
step_id: words
params: {texts: {type: path}}
run: {type: partition}
inputs: {documents: {backend: jsonl, path: "${params.texts}/*.jsonl", columns: [id, text]}}
transform: {name: tokenize, keep: [id]}
outputs: {rows: {backend: parquet, path: "${run.output}/rows"}}
"""


EMBED = "{name: embed, components: 0}"


class Command:
    """`treadle manifest` in this process, in a folder of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Called:
        self._capsys.readouterr()
        code = main(["manifest", *arguments])
        told = self._capsys.readouterr()
        return Called(code, told.out, told.err)


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    Path("words.yaml").write_text(GOOD)
    return Command(capsys)


def test_check_tells_of_several_files_at_once(manifest: Command) -> None:
    """In a repository with many manifests one call looks at all of them."""
    Path("typo.yaml").write_text(GOOD.replace("jsonl, path", "jsnl, path").replace("keep: ", "kep: "))
    Path("gone.yaml").write_text(GOOD + "include: [nowhere.yaml]\n")
    done = manifest("check", "words.yaml", "typo.yaml", "gone.yaml", "--param", "texts=t")
    assert done.code == 2
    assert done.out == "words.yaml: ok\n"
    for told in (
        "typo.yaml:5:22: inputs.documents.backend: expected one of ",
        "found 'jsnl'; did you mean 'jsonl'?",
        "typo.yaml:6:29: transform.kep: expected one of ",
        "gone.yaml:8:11: include[0]: expected an existing file",
    ):
        assert told in done.err


def test_check_tells_programs(manifest: Command) -> None:
    Path("typo.yaml").write_text(GOOD.replace("step_id", "step"))
    done = manifest("check", "words.yaml", "typo.yaml", "--param", "texts=t", "--format", "json")
    good, bad = json.loads(done.out)
    assert good == {"file": "words.yaml", "ok": True, "problems": []}
    assert {(each["line"], each["column"], each["field"]) for each in bad["problems"]} == {
        (2, 1, "step"),
        (1, 1, "step_id"),
    }


def test_check_annotates_a_pull_request(manifest: Command) -> None:
    """The workflow command of GitHub, with the characters escaped that it needs escaped."""
    Path("typo.yaml").write_text(GOOD.replace("step_id: words", 'step_id: words\n"100%": 1'))
    done = manifest("check", "typo.yaml", "--param", "texts=t", "--format", "github")
    assert done.out.startswith("::error file=typo.yaml,line=3,col=1::100%25: expected one of ")


def test_explain_prints_a_manifest_that_loads(manifest: Command) -> None:
    done = manifest("explain", "words.yaml", "--param", "texts=t")
    assert done.code == 0
    assert '"t/*.jsonl"' in done.out
    Path("again.yaml").write_text(done.out)
    load_manifest_path("again.yaml")


def test_plan_says_what_would_be_read_and_written(manifest: Command) -> None:
    Path("texts").mkdir()
    for name in ("a", "b"):
        Path(f"texts/{name}.jsonl").write_text('{"id": 1, "text": "one two"}\n')
    before = sorted(Path.cwd().rglob("*"))
    done = manifest("plan", "words.yaml", "--param", "texts=texts", "--output", "out")
    assert done.code == 0, done.err
    [line] = [line for line in done.out.splitlines() if line.startswith("documents")]
    assert line.split()[:5] == ["documents", "jsonl", "2", "2", "58"]
    assert "out/rows" in done.out
    assert "next: treadle manifest run words.yaml --param texts=texts --output out" in done.out
    assert sorted(Path.cwd().rglob("*")) == before


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("error", "2 rows in 1 file are there already, so a run is refused (mode error)"),
        ("overwrite", "2 rows in 1 file are there already; a run replaces them (mode overwrite)"),
        ("append", "2 rows in 1 file are there already; a run adds to them (mode append)"),
    ],
)
def test_plan_says_what_becomes_of_an_output_that_is_there(manifest: Command, mode: str, told: str) -> None:
    """Before a night of work, not after it; and nothing is touched meanwhile."""
    Path("texts").mkdir()
    Path("texts/a.jsonl").write_text('{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n')
    asked = ("words.yaml", "--param", "texts=texts", "--output", "out")
    assert "there already" not in manifest("plan", *asked).out
    assert manifest("run", *asked).code == 0
    Path("words.yaml").write_text(GOOD.replace('/rows"}', f'/rows", mode: {mode}}}'))
    before = {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")}
    assert f"output rows: {told}\n" in manifest("plan", *asked).out
    assert {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")} == before
    assert ("next: treadle manifest run" in manifest("plan", *asked).out) == (mode != "error")
    Path("out/rows/_manifest.json").unlink()
    told_of = manifest("plan", *asked).out
    assert "something that is no output of treadle is there, so a run is refused" in told_of
    assert (
        f"next: for the output rows: remove {Path('out/rows').absolute()}, give another --output\n" in told_of
    )


def test_what_is_no_output_of_treadle_is_not_to_be_overwritten(manifest: Command) -> None:
    """No mode does that, so none is advised."""
    Path("texts").mkdir()
    Path("texts/a.jsonl").write_text('{"id": 1, "text": "one"}\n')
    Path("out/rows").mkdir(parents=True)
    Path("out/rows/mine.txt").write_text("mine")
    done = manifest("run", "words.yaml", "--param", "texts=texts", "--output", "out")
    assert done.code == 1
    assert "remove it, or choose another path: without a _manifest.json it is no output" in done.err
    assert "mode: overwrite" not in done.err


def test_plan_says_what_to_do_about_an_output_in_a_fixed_place(manifest: Command) -> None:
    Path("texts").mkdir()
    Path("texts/a.jsonl").write_text('{"id": 1, "text": "one"}\n')
    Path("words.yaml").write_text(GOOD.replace("${run.output}", str(Path("fixed").absolute())))
    asked = ("words.yaml", "--param", "texts=texts")
    assert manifest("run", *asked).code == 0
    rows = Path("fixed/rows").absolute()
    advice = f"remove {rows}, give outputs.rows another path, or say mode: overwrite or append"
    assert f"next: for the output rows: {advice}\n" in manifest("plan", *asked).out


@pytest.mark.parametrize("output", [("--output", "out"), ()])
def test_plan_says_how_far_a_run_that_failed_came(manifest: Command, output: tuple[str, ...]) -> None:
    """Whether starting it again goes on or begins anew."""
    Path("texts").mkdir()
    for name in ("a", "b"):
        Path(f"texts/{name}.jsonl").write_text('{"id": 1, "text": "one two"}\n')
    Path("texts/c.jsonl").write_text("torn\n")
    Path("words.yaml").write_text(GOOD + "checkpoint: {}\n")
    asked = ("words.yaml", "--param", "texts=texts", *output)
    assert "done" not in manifest("plan", *asked).out
    assert manifest("run", *asked).code == 1
    before = {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")}
    assert "; 2 of 3 units done: a run goes on with the others\n" in manifest("plan", *asked).out
    Path("texts/a.jsonl").write_text('{"id": 1, "text": "another"}\n')
    assert "; 1 of 3 units done: a run goes on with the others\n" in manifest("plan", *asked).out
    Path("words.yaml").write_text(Path("words.yaml").read_text().replace("keep: [id]", "keep: []"))
    assert "of other settings, other code or another version: a run clears it" in manifest("plan", *asked).out
    after = {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")}
    changed = {each.name for each in before if before[each] != after.get(each)}
    assert changed == {"a.jsonl", "words.yaml"}
    assert after.keys() == before.keys()


@pytest.mark.parametrize("where", ["kept", "outside"])
def test_a_run_goes_on_in_its_folder_wherever_its_checkpoint_is(manifest: Command, where: str) -> None:
    """Not only with the checkpoint in its usual place; and never in the folder of a run that is complete."""
    Path("texts").mkdir()
    path = where if where == "kept" else Path(where).absolute()
    Path("words.yaml").write_text(GOOD + f"checkpoint: {{path: {path}}}\n")
    asked = ("words.yaml", "--param", "texts=texts")
    Path("texts/a.jsonl").write_text('{"id": 1, "text": "one"}\n')
    assert manifest("run", *asked).code == 0
    [complete] = Path(".treadle/runs/words").iterdir()
    Path("texts/b.jsonl").write_text("torn\n")
    assert manifest("run", *asked).code == 1
    [failed] = set(Path(".treadle/runs/words").iterdir()) - {complete}
    assert "; 1 of 2 units done: a run goes on with the others\n" in manifest("plan", *asked).out
    Path("texts/b.jsonl").write_text('{"id": 2, "text": "two"}\n')
    done = manifest("run", *asked)
    assert done.code == 0, done.err
    assert "1 of 2 units were done already" in done.out
    assert set(Path(".treadle/runs/words").iterdir()) == {complete, failed}
    assert manifest("run", *asked, "--output", "elsewhere").code == 0


def test_a_checkpoint_of_a_run_elsewhere_leaves_complete_runs_alone(manifest: Command) -> None:
    """The one folder of checkpoints serves runs with an --output of their own too."""
    Path("texts").mkdir()
    Path("texts/a.jsonl").write_text('{"id": 1, "text": "one"}\n')
    Path("words.yaml").write_text(GOOD + f"checkpoint: {{path: {Path('kept').absolute()}}}\n")
    asked = ("words.yaml", "--param", "texts=texts")
    assert manifest("run", *asked).code == 0
    Path("texts/b.jsonl").write_text("torn\n")
    assert manifest("run", *asked, "--output", "elsewhere").code == 1
    assert "there already" not in manifest("plan", *asked).out


def test_plan_says_on_what_the_units_of_a_side_input_depend(manifest: Command) -> None:
    """It does not read side inputs, and a run takes no unit that was done with others."""
    Path("texts").mkdir()
    vectors = pa.array([[1, 0], [0, 1]], pa.list_(pa.float32(), 2))
    pq.write_table(
        pa.table({"term": ["sea", "field"], "count": [5, 5], "vector": vectors}), "vectors.parquet"
    )
    for name in ("a", "b"):
        Path(f"texts/{name}.jsonl").write_text('{"id": 1, "tokens": ["sea"]}\n')
    Path("texts/c.jsonl").write_text("torn\n")
    side = "columns: [id, tokens]}, vectors: {backend: parquet, path: vectors.parquet}}"
    body = GOOD.replace("columns: [id, text]}}", side).replace("{name: tokenize, keep: [id]}", EMBED)
    Path("words.yaml").write_text(body + "checkpoint: {}\n")
    asked = ("words.yaml", "--param", "texts=texts", "--output", "out")
    assert manifest("run", *asked).code == 1
    told = "if side inputs and earlier phases are unchanged, a run goes on with the others"
    assert f"; 2 of 3 units done: {told}\n" in manifest("plan", *asked).out


@pytest.mark.parametrize(
    ("rule", "follows"),
    [("skip", "next: every row was rejected, and none is kept"), ("quarantine", "next: see why rows were")],
)
def test_a_run_says_why_the_first_rows_were_rejected(manifest: Command, rule: str, follows: str) -> None:
    """Else a run that rejected everything looks like a good one."""
    Path("texts").mkdir()
    Path("texts/a.jsonl").write_text("torn\n" * 5)
    Path("words.yaml").write_text(GOOD + f"errors: {{on_bad_row: {rule}}}\n")
    done = manifest("run", "words.yaml", "--param", "texts=texts", "--output", "out")
    assert done.code == 0, done.err
    reasons = done.out.partition("the first rejected rows:\n")[2].splitlines()
    assert [each.partition("texts/a.jsonl")[2].split(":")[1] for each in reasons[:3]] == ["1", "2", "3"]
    assert "not JSON" in reasons[0]
    assert reasons[3].startswith(follows)


def test_run_does_not_mind_the_ending_of_the_file(manifest: Command) -> None:
    Path("texts").mkdir()
    Path("texts/a.jsonl").write_text('{"id": 1, "text": "one two"}\n')
    Path("words.yaml").rename("words.drtml")
    done = manifest("run", "words.drtml", "--param", "texts=texts", "--output", "out")
    assert done.code == 0, done.err
    assert "1 rows in = 1 out + 0 filtered + 0 rejected" in done.out
    assert Path("out/rows/_manifest.json").exists()


@pytest.mark.parametrize("run_type", sorted(starters()))
def test_new_writes_a_manifest_that_loads(run_type: str, manifest: Command) -> None:
    done = manifest("new", run_type, "mine.yaml")
    assert done.code == 0
    assert "next: treadle manifest check mine.yaml" in done.out
    [line] = [line for line in done.out.splitlines() if line.startswith("next: treadle manifest ")]
    if run_type != "custom":  # its entry is still to be written
        assert manifest(*line.split()[3:]).code == 0
    text = Path("mine.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=drtml-4.schema.json\n")
    assert "step_id: mine\n" in text
    load_manifest_path("mine.yaml")


@pytest.mark.parametrize("run_type", sorted({*starters()} - {"custom"}))
def test_what_new_writes_is_fit_to_run(run_type: str, manifest: Command) -> None:
    """Only the params have to be given."""
    manifest("new", run_type, "mine.yaml")
    required = [name for name, each in _params("mine.yaml").items() if "default" not in each]
    given = [word for name in required for word in ("--param", f"{name}=somewhere")]
    done = manifest("check", "mine.yaml", *given)
    assert (done.code, done.out) == (0, "ok\n"), done.err


def _params(path: str) -> dict[str, dict[str, object]]:
    tree = plain(load_manifest_path(path).tree)
    assert isinstance(tree, dict)
    return tree.get("params", {})  # type: ignore[return-value]


def test_new_replaces_nothing(manifest: Command) -> None:
    done = manifest("new", "mapping", "words.yaml")
    assert done.code == 2
    assert "words.yaml exists already" in done.err
    assert Path("words.yaml").read_text() == GOOD


@pytest.mark.parametrize(
    "asked",
    [("new", "transform", "sub/dir/x.yaml"), ("schema", "--output", "sub/dir/x.json")],
)
def test_a_file_in_a_folder_that_is_not_there_is_refused(asked: tuple[str, ...], manifest: Command) -> None:
    done = manifest(*asked)
    assert done.code == 2
    assert f"{asked[-1]}: there is no folder sub/dir; make it, or name another file" in done.err
    Path(asked[-1]).mkdir(parents=True)
    assert f"{asked[-1]} is a folder; name a file in it" in manifest(*asked).err


def test_new_lists_the_types_and_knows_the_nearest(manifest: Command) -> None:
    listed = manifest("new")
    assert listed.code == 0
    assert all(each in listed.out for each in starters())
    assert "did you mean 'mapping'" in manifest("new", "maping").err


def test_schema_goes_to_a_file_for_editors(manifest: Command) -> None:
    printed = manifest("schema")
    told = manifest("schema", "--output", "drtml-4.schema.json")
    assert Path("drtml-4.schema.json").read_text() == printed.out
    assert "# yaml-language-server: $schema=drtml-4.schema.json" in told.out
    assert json.loads(printed.out)["$schema"].endswith("2020-12/schema")


def test_no_password_is_shown(manifest: Command) -> None:
    text = Path("words.yaml").read_text()
    Path("secret.yaml").write_text(
        text + "metrics: {log: 'postgresql://me:hunter2@host/d?password=hunter2'}\n"
        if "metrics:" not in text
        else text
    )
    done = manifest("explain", "secret.yaml", "--param", "texts=t")
    assert done.code == 0, done.err
    assert "postgresql://me:***@host/d?password=***" in done.out
    assert "hunter2" not in done.out + done.err
