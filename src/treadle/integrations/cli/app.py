"""The console script `treadle`: names the commands, calls one, and turns errors into exit codes.

0 is success, 1 work that failed, 2 a request that was wrong, 130 Ctrl-C, 143 SIGTERM. Commands are given as
import strings, so that `treadle --help` loads none of them. `TREADLE_DEBUG=1` shows the traceback of an
error.
"""

from __future__ import annotations

import io
import os
import select
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App, CycloptsError

from treadle import __version__
from treadle.errors import TreadleError, UsageError
from treadle.termination import TERMINATED, Terminated, raising_terminated

INTERRUPTED = 130
_NOTHING = Path(os.devnull)

COMMANDS = {
    "run": "Run an experiment or a manifest.",
    "plan": "Show what a run would do, and change nothing.",
    "why": "Say why a step would run or be served.",
    "graph": "Draw the steps of an experiment.",
    "ls": "List the steps of a store.",
    "show": "Show the record of a step.",
    "logs": "Print what a step printed and logged.",
    "history": "List the runs of a store, or what became of a step.",
    "diff": "Say what differs between two builds, or two steps.",
    "verify": "Look whether all files and records are whole.",
    "gc": "Say what in a store nobody needs, and remove it.",
    "forget": "Have a step built anew by the next run.",
    "generate": "Have a language model answer prompts.",
    "chat": "Talk with a language model.",
    "demo": "Turn 233 speeches into a labelled topic map, on one HTML page.",
}
# Where all arguments may be left out, the usage would call them only ARGS.
_ARGUMENTS = {
    "ls": "[PATTERN]",
    "history": "[STEP]",
    "verify": "[STEP...]",
    "gc": "[TARGET...]",
    "diff": "STEP [STEP]",
    "generate": "[PROMPT...]",
}
MANIFEST_COMMANDS = {
    "check": ("manifest:check", "Say what is wrong with manifests, or ok."),
    "explain": ("manifest:explain", "Print the final manifest, with the place that each value comes from."),
    "plan": ("manifest_plan:plan", "Show what a run of a manifest would read and write, and change nothing."),
    "run": ("manifest_run:run", "Run a manifest."),
    "new": ("manifest_new:new", "Write a commented manifest to begin with."),
    "schema": ("manifest_new:schema", "Print the JSON Schema of the language, for editors."),
    "dashboard": ("manifest_telemetry:dashboard", "Print a Grafana dashboard for the runs of a manifest."),
    "alerts": ("manifest_telemetry:alerts", "Print Prometheus alert rules for the runs of a manifest."),
}
_HERE = "treadle.integrations.cli"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (those of the process when None) and return the exit code."""
    # See docs/decisions/0005-one-thread-per-product.md.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _open_what_is_closed()
    _say_whatever_comes()
    try:
        with raising_terminated():
            build_app()(arguments, exit_on_error=False)
    except CycloptsError:  # it has been printed, with the usage
        return UsageError.exit_code
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except Terminated:
        return _failed("told to end by SIGTERM", TERMINATED)
    except TreadleError as error:
        return _failed(str(error), error.exit_code)
    except (OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError) and _is_unread():
            return TreadleError.exit_code
        return _failed(f"{type(error).__name__}: {error}", TreadleError.exit_code)
    return 0


def build_app() -> App:
    """The commands. Their help texts are here because reading them from the commands would load those."""
    app = App(
        name="treadle",
        help="Runs the steps of machine-learning work: an experiment, a run, a forward pass.",
        version=__version__,
        result_action="return_none",
        suppress_keyboard_interrupt=False,
    )
    for name, text in COMMANDS.items():
        # A version is also an option of some commands; that of the package is asked for before them.
        given = {"usage": f"Usage: treadle {name} [OPTIONS] {_ARGUMENTS[name]}"} if name in _ARGUMENTS else {}
        app.command(f"{_HERE}.{name}:{name}", name=name, help=text, version_flags=(), **given)
    manifest = App(name="manifest", help="Look at manifests, run them, begin new ones.")
    for name, (place, text) in MANIFEST_COMMANDS.items():
        manifest.command(f"{_HERE}.{place}", name=name, help=text)
    app.command(manifest)
    return app


def _open_what_is_closed() -> None:
    """Whoever started the process may have closed its input or outputs: there is nothing to read, then."""
    sys.stdin = sys.stdin or _NOTHING.open()
    sys.stdout = sys.stdout or _NOTHING.open("w")
    sys.stderr = sys.stderr or _NOTHING.open("w")


def _say_whatever_comes() -> None:
    """A name that the encoding of the terminal cannot write is no reason to stop."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_unread() -> bool:
    """Whether the reader of standard output has left, as `head` does; what is left for it is dropped."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # of errors it tells in any case
    if left := any(events & select.POLLERR for _, events in poll.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return left


def _failed(message: str, code: int) -> int:
    """Print the error being handled, with its traceback when that was asked for."""
    if os.environ.get("TREADLE_DEBUG"):
        traceback.print_exc()
    sys.stderr.write(f"treadle: {message}\n")
    for note in getattr(sys.exception(), "__notes__", ()):
        sys.stderr.write(f"  {note}\n")
    return code
