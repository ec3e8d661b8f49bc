"""An experiment is found by file or module, and what is wrong with it is told with its place."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import GeneratorType

import pytest

from treadle.errors import ArgumentError, UnknownNameError, UsageError
from treadle.execution import Handle
from treadle.experiment.target import load_target

STEPS = """
from dataclasses import dataclass
from treadle import step
from helper import WORD

@step
def make(word: str) -> str:
    return word

b = make(WORD).named("b")
a = make("x").named("a")
again = b
many = [a, b]

if __name__ == "__main__":
    raise SystemExit("run as a script")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with an experiment in `lab/exp.py`; what is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    write("lab/helper.py", "WORD = 'hello'")
    write("lab/exp.py", STEPS)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def names(target: str) -> list[str]:
    return [each.name for each in load_target(target)]


def test_without_a_name_all_steps_of_the_module_in_order(folder: Path) -> None:
    assert names("lab/exp.py") == ["b", "a"]
    assert names(str(folder / "lab" / "exp.py")) == ["b", "a"]


@pytest.mark.parametrize(("attr", "found"), [("a", ["a"]), ("many", ["a", "b"])])
def test_a_named_attribute(folder: Path, attr: str, found: list[str]) -> None:
    assert names(f"lab/exp.py:{attr}") == found


def test_a_module_is_found_from_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("pack/__init__.py", "")
    write("pack/sub.py", "from .inner import a")
    write("pack/inner.py", "from treadle import step\n@step(name='p')\ndef make() -> int: ...\na = make()\n")
    assert names("pack.sub") == ["p"]
    assert names("pack.sub:a") == ["p"]
    monkeypatch.chdir("lab")
    assert names("exp:a") == ["a"]


def test_identities_equal_those_of_an_import(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [each.id for each in load_target("lab/exp.py") if isinstance(each, Handle)]
    del sys.modules["exp"]
    monkeypatch.syspath_prepend("lab")
    import exp  # type: ignore[import-not-found]

    assert ids == [exp.b.id, exp.a.id]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return a", ["a"]),
        ("return {'x': b, 'y': a}", ["b", "a"]),
        ("return (each for each in (a, b))", ["a", "b"]),
        ("yield b", ["b"]),
    ],
)
def test_build_says_what_to_run(folder: Path, body: str, found: list[str]) -> None:
    write("lab/built.py", f"{STEPS}\ndef build():\n    {body}\n")
    assert names("lab/built.py") == found


def test_steps_in_lists_tuples_and_dicts_at_the_top_level_are_taken(folder: Path) -> None:
    """A sweep is such a list; to drop it in silence would leave the half of an experiment out."""
    write(
        "lab/swept.py",
        "from treadle import step\n@step\ndef make(n: int) -> int: ...\n"
        "swept = [make(1).named('one'), 7, make(2).named('two')]\n"
        "pair = (swept[0], make(3).named('three'))\nnamed = {'x': make(4).named('four')}\n"
        "deep = [[make(5).named('five')]]\n",
    )
    assert names("lab/swept.py") == ["one", "two", "three", "four"]


@pytest.mark.parametrize("as_module", [False, True])
def test_a_run_while_it_is_loaded_is_refused(
    folder: Path, as_module: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else `treadle plan` would run it all."""
    write("lab/eager.py", f"{STEPS}\nfrom treadle import run\nrun(a)\n")
    monkeypatch.chdir("lab")
    target = "eager" if as_module else "eager.py"
    message = (
        rf"{target} calls run\(\) while it is loaded; put that under `if __name__ == '__main__':`.*py:\d+"
    )
    with pytest.raises(UsageError, match=message):
        load_target(target)
    assert not Path(".treadle").exists()


def test_a_file_above_is_the_same_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("lab/sub").mkdir()
    monkeypatch.chdir("lab/sub")
    assert names("../exp.py") == ["b", "a"]
    assert sys.modules["exp"].__file__ == str(folder / "lab" / "exp.py")
    assert not any(".." in each for each in sys.path)


def test_a_generator_is_not_listed(folder: Path) -> None:
    """A million steps stream through a runner."""
    write("lab/endless.py", f"{STEPS}\ndef build():\n    while True:\n        yield a\n")
    steps = load_target("lab/endless.py")
    assert isinstance(steps, GeneratorType)
    assert next(steps).name == "a"


def test_a_step_called_build_is_a_step(folder: Path) -> None:
    write("lab/own.py", "from treadle import step\n@step\ndef build(n: int) -> int: ...\nx = build(1)")
    assert names("lab/own.py") == ["build"]
    with pytest.raises(ArgumentError, match="without arguments, got one that needs n"):
        load_target("lab/own.py:build")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("lab/exq.py", r"expected a Python file, found none at lab/exq\.py; did you mean lab/exp\.py"),
        ("far/x.py:a", r"found none at far/x\.py \(current folder: "),
        ("no_such.module", "no module 'no_such.module' on the path"),
        ("", "expected FILE.py, FILE.py:NAME or MODULE"),
        ("lab/exp.py:a.b", "expected FILE.py, FILE.py:NAME or MODULE"),
        ("lab/exp.py:make", "got one that needs word"),
        ("lab/helper.py", r"expected a function build\(\) that returns a step .* lab/helper\.py:NAME"),
        ("lab/helper.py:WORD", "expected a step .* got 'hello'"),
    ],
)
def test_what_is_wrong_with_a_target(folder: Path, target: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        load_target(target)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return [a, 3]", r"build\(\)\[1\]: expected a handle or a StepSpec, got 3"),
        ("return []", "got none at all"),
        ("return None", "got None"),
        ("return 1 / 0", r"build failed at .*bad\.py:20: ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_wrong_with_build(folder: Path, body: str, message: str) -> None:
    write("lab/bad.py", f"{STEPS}\n\ndef build():\n    {body}\n")
    with pytest.raises(ArgumentError, match=message):
        load_target("lab/bad.py")


def test_an_unknown_attribute_lists_what_there_is(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown name in lab/exp\.py 'meny'; did you mean 'many'"):
        load_target("lab/exp.py:meny")


@pytest.mark.parametrize(
    ("text", "message", "cause"),
    [
        ("x = 1\ny = x / 0\n", r"lab/bad\.py failed at .*bad\.py:2: ZeroDivisionError", ZeroDivisionError),
        ("import json\njson.loads('{')\n", r"failed at .*bad\.py:2: JSONDecodeError", ValueError),
        ("x = 1\ny = = 2\n", r"failed at .*bad\.py:2: SyntaxError: invalid syntax", SyntaxError),
        ("raise SystemExit(0)\n", r"failed at .*bad\.py:1: SystemExit", SystemExit),
        ("import no_such\n", r"bad\.py:1: ModuleNotFoundError: No module named 'no_such'", ImportError),
    ],
)
@pytest.mark.parametrize("as_module", [False, True])
def test_what_an_import_raises_is_the_cause(
    folder: Path,
    text: str,
    message: str,
    cause: type[BaseException],
    as_module: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write("lab/bad.py", text)
    if as_module:
        monkeypatch.chdir("lab")
        message = message.replace(r"lab/bad\.py", "bad")
    with pytest.raises(ArgumentError, match=message) as caught:
        load_target("bad" if as_module else "lab/bad.py")
    assert isinstance(caught.value.__cause__, cause)
    assert "bad" not in sys.modules


@pytest.mark.parametrize("name", ["statistics", "pytest"])
def test_a_file_that_would_hide_another_module_is_refused(folder: Path, name: str) -> None:
    write(f"lab/{name}.py", STEPS)
    with pytest.raises(ArgumentError, match=f"the module name '{name}' is taken by .*; rename the file"):
        load_target(f"lab/{name}.py")
