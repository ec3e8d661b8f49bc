from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Iterator

import pytest

from treadle.errors import StoppedError
from treadle.fray import stop_requested
from treadle.termination import TERMINATED, Terminated, raising_terminated


def strike() -> None:
    signal.raise_signal(signal.SIGTERM)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """The tests go on after they were told to end."""
    yield
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_sigterm_is_raised_once_and_does_not_tear_the_clean_up() -> None:
    cleaned: list[str] = []
    with pytest.raises(Terminated) as caught, raising_terminated():
        try:
            strike()
        finally:
            strike()
            cleaned.append("up")
    strike()
    assert cleaned == ["up"]
    assert caught.value.code == TERMINATED == 143


class StruckWhenCollected:
    """Told to end where an exception is lost: the interpreter prints it and goes on."""

    def __del__(self) -> None:
        strike()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_is_lost_in_a_callback_stops_work_that_asks() -> None:
    """Else a run that was told to end would go on to its end."""
    with pytest.raises(Terminated), raising_terminated():
        StruckWhenCollected()
        assert stop_requested()
        raise StoppedError("as it was asked to")
    assert not stop_requested()


def test_who_is_stopped_without_a_signal_was_not_told_to_end() -> None:
    with pytest.raises(StoppedError), raising_terminated():
        raise StoppedError("as it was asked to")


def test_sigterm_means_again_what_it_meant_after_the_block() -> None:
    with raising_terminated():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_somebody_else_does_at_sigterm_stays() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with raising_terminated():
            strike()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


def test_another_thread_than_the_main_one_sets_no_handler() -> None:
    """It may not."""
    found: list[object] = []

    def enter() -> None:
        with raising_terminated():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]


def test_the_child_of_a_fork_ends_as_without_a_handler() -> None:
    """Else it would unwind what belongs to its parent."""
    with raising_terminated():
        child = os.fork()
        if child == 0:
            try:
                strike()
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM


def test_it_travels_between_processes() -> None:
    assert pickle.loads(pickle.dumps(Terminated())).code == TERMINATED
