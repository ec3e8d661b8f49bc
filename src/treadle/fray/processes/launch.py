"""Starts the process of a worker, and opens what the driver follows it by."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from treadle.fray.processes.setting import Setting
from treadle.fray.processes.start import Start

_BEGIN = (
    "import sys; given = sys.argv[1]; sys.path[:] = sys.argv[2:]; del sys.argv[1:]; "
    "from treadle.fray.processes.worker import main; main(given)"
)


def started(setting: Setting, start: Start, out: int, err: int) -> subprocess.Popen[bytes]:
    """A worker that writes to `out` and `err`; it leads a session, and so a group, of its own.

    Raises:
        OSError: the process could not be started.
    """
    environment = setting.environment
    folder = environment.working_dir or setting.folder
    search_path = (each for each in setting.search_path if isinstance(each, str))  # as the import system does
    paths = [os.path.join(setting.folder, each) for each in (*environment.python_path, *search_path)]  # noqa: PTH118
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return subprocess.Popen(  # noqa: S603 - this interpreter, with arguments of our own
        [sys.executable, *flags, "-c", _BEGIN, str(start), *paths],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        cwd=os.path.join(setting.folder, folder),  # noqa: PTH118
        env={**os.environ, **environment.env_vars},
        pass_fds=start.fds,
        start_new_session=True,
    )


def opened_pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    """A pipe; each end is closed by its own stack."""
    read_end, write_end = os.pipe()
    reading.callback(os.close, read_end)
    writing.callback(os.close, write_end)
    return read_end, write_end


def opened_pidfd(pid: int, undo: ExitStack) -> int:
    """Readable when the process has ended; -1 where there is no such thing."""
    if not hasattr(os, "pidfd_open"):
        return -1
    fd: int = os.pidfd_open(pid)
    undo.callback(os.close, fd)
    return fd


@contextmanager
def standard_fds_kept() -> Iterator[None]:
    """Whatever is opened in the block gets no file descriptor that a child takes for its input or output."""
    with ExitStack() as low:
        while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:  # this process has closed that one
            low.callback(os.close, fd)
        os.close(fd)
        yield


def exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Of one that has ended, or is about to: its code, or minus the signal. None: nobody knows.

    It keeps its process id, where there are pidfds to follow it by.
    """
    if not hasattr(os, "pidfd_open"):
        return process.wait()
    try:
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:  # somebody else has reaped it, or this process wants to know of no child
        return process.returncode or None  # 0 is what `subprocess` makes of that, too
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def in_words(code: int | None) -> str:
    """How a process with this code, as `subprocess` gives it, has ended."""
    if code is None:
        return "ended (nobody knows how: this process ignores SIGCHLD, or waits for any child)"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
