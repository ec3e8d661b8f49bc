"""The code hash changes with what a function says, not with how it is written down."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from treadle.artifacts import code_hash
from treadle.artifacts.code_hash import comparable


def plain(path: str) -> int:
    return len(path) + 1


def make(body: str) -> Callable[..., Any]:
    space: dict[str, Any] = {}
    exec(body, space)
    return space["f"]  # type: ignore[no-any-return]


def test_layout_comments_and_docstrings_do_not_count() -> None:
    def one(path: str) -> int:
        return len(path) + 1

    first = code_hash(one)

    def one(path: str) -> int:  # type: ignore[no-redef]
        """Says more."""
        # and more
        return (len(path)
                + 1)  # fmt: skip

    assert code_hash(one) == first != code_hash(plain)


def test_partials_wrappers_and_callables_stand_by_their_function() -> None:
    class Callable_:  # noqa: N801
        def __call__(self, path: str) -> int:
            return 2

    @functools.wraps(plain)
    def wrapper(path: str) -> int:
        return plain(path)

    assert code_hash(functools.partial(plain, "x")) == code_hash(plain) == code_hash(wrapper)
    assert code_hash(Callable_()) not in ("", code_hash(plain))


class One:
    """A step made of a class: a call of it does the work."""

    def __init__(self, path: str) -> None:
        self.path = path


def test_a_class_stands_by_its_source_and_a_method_by_its_function() -> None:
    class Two:
        def __init__(self, path: str) -> None:
            self.path = path + "x"

        def work(self, path: str) -> int:
            return 1

    assert code_hash(One) not in ("", code_hash(Two))
    assert code_hash(Two("a").work) == code_hash(Two.work)


def test_functions_of_equal_code_and_different_source_differ(tmp_path: Path) -> None:
    """Annotations are no part of the code object, and in two files even its line can be the same."""
    hashes = []
    for name, annotation in [("a", "int"), ("b", "str")]:
        file = tmp_path / f"{name}.py"
        file.write_text(f"def f(path: {annotation}):\n    return path\n")
        space: dict[str, Any] = {}
        exec(compile(file.read_text(), file, "exec"), space)
        hashes.append(code_hash(space["f"]))
    assert len(set(hashes)) == 2


def test_a_lambda_inside_an_expression_has_a_hash() -> None:
    functions = [lambda path: path, lambda path: len(path)]
    assert all(map(code_hash, functions))


def test_without_source_the_bytecode_counts() -> None:
    """`python - <<EOF` and prompts give none; an edit would go unnoticed. Where it stands does not count."""
    first = code_hash(make("def f(path): return [1 for _ in path]"))
    assert first == code_hash(make("\n\ndef f(path):\n    return [1 for _ in path]"))
    others = ["[2 for _ in path]", "[1.0 for _ in path]", "[True for _ in path]", "{1 for _ in path}"]
    assert len({first, *(code_hash(make(f"def f(path): return {each}")) for each in others)}) == 5
    assert first.startswith(f"{sys.implementation.cache_tag}:")
    assert code_hash(len) == ""


def test_the_bytecode_says_the_same_under_every_hash_seed() -> None:
    """A set of literals is a constant, whose order is that of the hashes."""
    script = (
        "from treadle.artifacts import code_hash\n"
        "def f(path): return path in {'a', 'b', 'c', 'd'}\nprint(code_hash(f))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


def test_hashes_of_two_kinds_say_nothing_of_each_other() -> None:
    """The file may be gone, or Python another one: that is no change of the code."""
    source, bytecode = code_hash(plain), code_hash(make("def f(path): return 1"))
    assert comparable(source, "0" * 64)
    assert comparable(bytecode, bytecode)
    assert not comparable(source, bytecode)
    assert not comparable("cpython-311:0", "cpython-312:0")
    assert not comparable("", "")


def test_a_file_that_was_edited_into_nonsense_is_no_source(tmp_path: Path) -> None:
    """People edit a script while it runs: a step must not fail over that."""
    file = tmp_path / "edited.py"
    file.write_text("def f(path):\n    return 1\n")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), file, "exec"), space)
    file.write_text('(\n"""')
    assert code_hash(space["f"]) == code_hash(make("def f(path): return 1"))
