"""`treadle generate`: have a language model answer prompts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated

from cyclopts import Parameter

from treadle.engine import Completion, GenerationRequest, Message
from treadle.errors import EngineError, UsageError
from treadle.integrations.cli.console import as_json, warn
from treadle.integrations.cli.speaking import SPEAKING, Pace, Speaking, answer, show_at_once

_AT_ONCE = 16


def generate(
    *prompts: str,
    speaking: Annotated[Speaking, Parameter(name="*")] = SPEAKING,
    plain: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Have a language model answer prompts, and print the answers in their order.

    Parameters
    ----------
    prompts
        What to answer; without any, each line of standard input that is not blank.
    plain
        Go on from the prompts as they are, not as from a question in a chat.
    as_json
        Print a line of JSON for each prompt: prompt, answer, tokens, how it ended.
    """
    if plain and speaking.system is not None:
        raise UsageError("--system belongs to a chat: leave it out, or --plain")
    asked = list(prompts) or list(_lines())
    if not asked:
        raise UsageError("there is nothing to answer: give a prompt, or one a line on standard input")
    requests = [_request(speaking, at, each, plain) for at, each in enumerate(asked)]
    engine = speaking.load(min(len(asked), _AT_ONCE))
    pace = Pace.start()
    if as_json:
        completions = _tell_each(engine.generate(requests), partial(_tell_json, asked))
    elif len(asked) > 1:
        completions = _tell_each(engine.generate(requests), _tell)
    else:
        completions = answer(engine, requests, show_at_once)
        show_at_once("\n")
    _warn_of_errors(completions)
    if any(each.token_ids for each in completions):
        pace.tell(completions)
    _raise_if_failed(completions)


def _lines() -> Iterator[str]:
    if sys.stdin.isatty():
        sys.stderr.write("a prompt a line; Ctrl-D ends them\n")
    return (line for each in sys.stdin if (line := each.strip()))


def _request(speaking: Speaking, number: int, prompt: str, plain: bool) -> GenerationRequest:
    asked = prompt if plain else (*speaking.opening(), Message("user", prompt))
    return speaking.request(str(number), asked)


def _tell_each(completions: Generator[Completion], tell: Callable[[Completion], None]) -> list[Completion]:
    """Tell each as soon as it is there and all before it; all of them, in their order."""
    told: list[Completion] = []
    with closing(completions):
        for each in _in_order(completions):
            tell(each)
            told.append(each)
    return told


def _in_order(completions: Iterable[Completion]) -> Iterator[Completion]:
    """The completions of requests called 0, 1, 2 and so on, in that order."""
    early: dict[int, Completion] = {}
    place = 0
    for each in completions:
        early[int(each.id)] = each
        while place in early:
            yield early.pop(place)
            place += 1


def _tell(completion: Completion) -> None:
    show_at_once(f"{completion.text}\n")


def _tell_json(asked: Sequence[str], completion: Completion) -> None:
    told = {
        "prompt": asked[int(completion.id)],
        "answer": completion.text,
        "prompt_tokens": completion.prompt_tokens,
        "new_tokens": len(completion.token_ids),
        "finish_reason": completion.finish_reason,
        **({"error": completion.error} if completion.error else {}),
    }
    show_at_once(as_json(told) + "\n")


def _warn_of_errors(completions: Sequence[Completion]) -> None:
    for each in completions:
        if each.error:
            warn(f"prompt {int(each.id) + 1}: {each.error}")


def _raise_if_failed(completions: Sequence[Completion]) -> None:
    failed = sum(each.finish_reason == "error" for each in completions)
    if failed:
        raise EngineError(f"{failed} of {len(completions)} prompts have no answer")
