"""What was taken is given back: in reverse, once, and the first error is the one that is told."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.kernel import Unwind


class Broken(Exception):
    pass


def breaking(name: str, log: list[str], fails: bool) -> None:
    log.append(name)
    if fails:
        raise Broken(name)


@given(st.lists(st.booleans(), max_size=6), st.booleans())
def test_every_undo_runs_once_in_reverse_and_the_first_error_is_kept(
    fails: list[bool], body_fails: bool
) -> None:
    log: list[str] = []
    raised: Broken | None = None
    try:
        with Unwind() as unwind:
            for at, fail in enumerate(fails):
                unwind.push(breaking, f"undo {at}", log, fail)
            if body_fails:
                raise Broken("body")
    except Broken as error:
        raised = error
    assert log == [f"undo {at}" for at in reversed(range(len(fails)))]
    broken = ["body"] * body_fails + [f"undo {at}" for at in reversed(range(len(fails))) if fails[at]]
    assert (str(raised) if raised else None) == (broken[0] if broken else None)
    notes = getattr(raised, "__notes__", [])
    assert len(notes) == max(0, len(broken) - 1)
    assert all(f"Broken: {name}" in note for name, note in zip(broken[1:], notes, strict=True))


def test_release_keeps_what_was_taken() -> None:
    log: list[str] = []
    with Unwind() as unwind:
        unwind.push(log.append, "undone")
        unwind.release()
    assert log == []


def test_an_undo_that_is_interrupted_does_not_stop_the_others() -> None:
    """Ctrl-C during clean-up must not leave the rest taken for ever."""
    log: list[str] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Unwind() as unwind:
        unwind.push(log.append, "first taken")
        unwind.push(interrupted)
    assert log == ["first taken"]


def test_leaving_twice_undoes_once() -> None:
    log: list[str] = []
    unwind = Unwind()
    unwind.push(log.append, "undone")
    for _ in range(2):
        with unwind:
            pass
    assert log == ["undone"]


def test_an_undo_may_push_another() -> None:
    log: list[str] = []
    with Unwind() as unwind:
        unwind.push(lambda: unwind.push(log.append, "late"))
    assert log == ["late"]


@dataclass(frozen=True)
class Frozen(Exception):
    code: int = 1


def test_an_error_that_takes_no_notes_does_not_stop_the_undoing() -> None:
    """A frozen exception refuses notes; what was taken is given back all the same."""
    log: list[str] = []
    error = Frozen()
    with pytest.raises(Frozen) as caught, Unwind() as unwind:
        unwind.push(breaking, "first", log, False)
        unwind.push(breaking, "second", log, True)
        raise error
    assert caught.value is error
    assert log == ["second", "first"]
