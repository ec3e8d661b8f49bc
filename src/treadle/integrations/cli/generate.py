"""`treadle generate`: have a language model answer prompts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from treadle.engine import Completion, GenerationRequest, Message
from treadle.errors import EngineError, UsageError
from treadle.integrations.cli.console import warn
from treadle.integrations.cli.speaking import SPEAKING, Pace, Speaking, answer, show_at_once

_AT_ONCE = 16


def generate(
    *prompts: str,
    speaking: Annotated[Speaking, Parameter(name="*")] = SPEAKING,
    plain: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> None:
    """Have a language model answer prompts, and print the answers in their order.

    Parameters
    ----------
    prompts
        What to answer; without any, each line of standard input that is not blank.
    plain
        Go on from the prompts as they are, not as from a question in a chat.
    """
    if plain and speaking.system is not None:
        raise UsageError("--system belongs to a chat: leave it out, or --plain")
    asked = list(prompts) or [line for each in sys.stdin if (line := each.strip())]
    if not asked:
        raise UsageError("there is nothing to answer: give a prompt, or one a line on standard input")
    requests = [_request(speaking, at, each, plain) for at, each in enumerate(asked)]
    engine = speaking.load(min(len(asked), _AT_ONCE))
    pace = Pace.start()
    alone = len(asked) == 1
    completions = answer(engine, requests, show_at_once) if alone else list(engine.generate(requests))
    ordered = sorted(completions, key=lambda each: int(each.id))
    _tell(ordered, texts=not alone)
    pace.tell(ordered)
    _raise_if_failed(ordered)


def _request(speaking: Speaking, number: int, prompt: str, plain: bool) -> GenerationRequest:
    asked = prompt if plain else (*speaking.opening(), Message("user", prompt))
    return speaking.request(str(number), asked)


def _tell(completions: Sequence[Completion], *, texts: bool) -> None:
    for each in completions:
        show_at_once(f"{each.text}\n" if texts else "\n")
        if each.error:
            warn(f"prompt {int(each.id) + 1}: {each.error}")


def _raise_if_failed(completions: Sequence[Completion]) -> None:
    failed = sum(each.finish_reason == "error" for each in completions)
    if failed:
        raise EngineError(f"{failed} of {len(completions)} prompts have no answer")
