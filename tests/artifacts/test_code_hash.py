"""The code hash changes with what a function says, not with how it is written down."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from treadle.artifacts import code_hash


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


def test_no_source_is_no_statement() -> None:
    """What was typed at a prompt cannot be compared later, so it never counts as changed."""
    assert code_hash(make("def f(path): return 1")) == ""
    assert code_hash(len) == ""


def test_a_file_that_was_edited_into_nonsense_is_no_source(tmp_path: Path) -> None:
    """People edit a script while it runs: a step must not fail over that."""
    file = tmp_path / "edited.py"
    file.write_text("def f(path):\n    return 1\n")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), file, "exec"), space)
    file.write_text('(\n"""')
    assert code_hash(space["f"]) == ""
