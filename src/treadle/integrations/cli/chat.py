"""`treadle chat`: talk with a language model."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treadle.engine import Message
from treadle.integrations.cli.console import warn
from treadle.integrations.cli.speaking import SPEAKING, Pace, Speaking, answer, show_at_once

if TYPE_CHECKING:
    from treadle.engine import Engine

_COMMAND = re.compile(r"/[a-z]+")
_FORGET = "; /new begins again with nothing to remember"
_COMMANDS = "/new begins again, Ctrl-C ends an answer, Ctrl-D or /quit the chat"


def chat(*, speaking: Annotated[Speaking, Parameter(name="*")] = SPEAKING) -> None:
    """Talk with a language model, a line each; Ctrl-C ends an answer, Ctrl-D the chat.

    Every turn sees those before it. `/new` forgets them, `/quit` ends the chat too.
    """
    engine = speaking.load()
    sys.stderr.write(f"{speaking.model}; {_COMMANDS}\n")
    talk = _Talk(engine, speaking)
    while (line := _read()) not in (None, "/quit"):
        if line == "/new":
            talk.forget()
        elif _COMMAND.fullmatch(line):
            warn(f"unknown command {line}: {_COMMANDS}")
        elif line:
            talk.turn(line)


class _Talk:
    """The turns so far, each with its answer."""

    def __init__(self, engine: Engine, speaking: Speaking) -> None:
        self._engine = engine
        self._speaking = speaking
        self._turns = speaking.opening()

    def forget(self) -> None:
        self._turns = self._speaking.opening()

    def turn(self, question: str) -> None:
        """Answer; a question without an answer is forgotten."""
        asked = (*self._turns, Message("user", question))
        shown: list[str] = []

        def show(text: str) -> None:
            shown.append(text)
            show_at_once(text)

        pace = Pace.start()
        try:
            completions = answer(self._engine, [self._speaking.request("chat", asked)], show)
        except KeyboardInterrupt:  # the answer is enough as it is
            completions = []
        show_at_once("\n")
        for each in completions:
            if each.error:
                warn(each.error + (_FORGET if self._turns != self._speaking.opening() else ""))
                return
            pace.tell([each])
        self._turns = (*asked, Message("assistant", "".join(shown)))


def _read() -> str | None:
    """The next line; None at the end, or at Ctrl-C where nothing is being answered."""
    prompt = "> " if sys.stdin.isatty() else ""
    try:
        return input(prompt).strip()
    except (EOFError, KeyboardInterrupt):
        return None
