"""What `treadle generate` and `treadle chat` share: the model, how it answers, and the answers."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from treadle.engine import Completion, Delta, GenerationRequest, Message
from treadle.engine.catalog import check_ready
from treadle.errors import ArgumentError
from treadle.integrations.cli.console import warn

if TYPE_CHECKING:
    from treadle.engine import Engine


@dataclass(frozen=True, kw_only=True)
class Speaking:
    """Who answers, and how."""

    model: Annotated[
        str, Parameter(help="A model by name, a .gguf file, or a folder as Hugging Face has them.")
    ] = "smollm2-135m-instruct"
    system: Annotated[str | None, Parameter(help="What the model is told before all else.")] = None
    max_new_tokens: Annotated[int, Parameter(help="How long an answer may be, in tokens.")] = 256
    temperature: Annotated[
        float, Parameter(help="0 takes the likeliest token each time; above it, tokens are drawn.")
    ] = 0.0
    top_k: Annotated[int, Parameter(help="Draw among so many of the likeliest tokens; 0 among all.")] = 0
    top_p: Annotated[
        float, Parameter(help="Draw among the likeliest tokens that together reach this chance.")
    ] = 1.0
    min_p: Annotated[
        float, Parameter(help="Draw among tokens at least so likely as this share of the likeliest one.")
    ] = 0.0
    repetition_penalty: Annotated[
        float, Parameter(help="Above 1, tokens that were there already become less likely.")
    ] = 1.0
    stop: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="An answer ends before the first of these texts; may be repeated."),
    ] = ()
    seed: Annotated[int, Parameter(help="What the draws start from.")] = 0
    precision: Annotated[
        Literal["float32", "bfloat16", "int8"],
        Parameter(help="float32 is exact; bfloat16 takes half the memory; int8 is an approximation."),
    ] = "float32"
    threads: Annotated[int | None, Parameter(help="Threads that compute; by default those of torch.")] = None

    def load(self, max_batch: int = 1) -> Engine:
        """The engine with the model, for so many requests at once.

        Raises:
            UsageError: the model is not known or not there, or what it takes to run it is not installed.
            ArtifactError: its files are damaged.
        """
        check_ready(self.model)
        # Here, not at the top: it loads torch, which takes over a second and is an optional package.
        from treadle.engine import Engine

        with _engine_heard():
            return Engine.load(
                self.model, max_batch=max_batch, threads=self.threads, precision=self.precision
            )

    def request(self, name: str, prompt: str | tuple[Message, ...]) -> GenerationRequest:
        """A request for an answer to `prompt`. Raises ArgumentError for options that are out of range."""
        try:
            return GenerationRequest(
                name,
                prompt,
                self.max_new_tokens,
                self.stop,
                temperature=self.temperature,
                top_k=self.top_k,
                top_p=self.top_p,
                min_p=self.min_p,
                repetition_penalty=self.repetition_penalty,
                seed=self.seed,
            )
        except ArgumentError as error:  # of all requests alike, and the names are ours
            raise ArgumentError(str(error).removeprefix(f"request {name!r}: ")) from error

    def opening(self) -> tuple[Message, ...]:
        """What stands before the first question of a chat."""
        return () if self.system is None else (Message("system", self.system),)


SPEAKING = Speaking()


class _Notices(logging.Handler):
    """Says on standard error what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        warn(record.getMessage())


@contextmanager
def _engine_heard() -> Iterator[None]:
    """Have the engine say what it takes its time for: a first start compiles, and looks as if it hung."""
    logger, notices = logging.getLogger("treadle.engine"), _Notices()
    before = logger.level
    logger.addHandler(notices)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(notices)


def answer(
    engine: Engine, requests: Iterable[GenerationRequest], show: Callable[[str], None]
) -> list[Completion]:
    """The completions as they come; `show` gets the parts of their texts."""
    ended: list[Completion] = []
    with closing(engine.stream(requests)) as told:
        for each in told:
            if isinstance(each, Delta):
                show(each.text)
            else:
                ended.append(each)
    return ended


def show_at_once(text: str) -> None:
    """Print a part of a text where the last one ended."""
    sys.stdout.write(text)
    sys.stdout.flush()


@dataclass
class Pace:
    """How long answers took, said on standard error."""

    started: float

    @classmethod
    def start(cls) -> Pace:
        """From now on."""
        return cls(time.perf_counter())

    def tell(self, completions: Sequence[Completion]) -> None:
        """Tokens, seconds, what one gives by the other, and how many answers are not whole."""
        seconds = time.perf_counter() - self.started
        ran = [each for each in completions if each.token_ids]
        read, new = sum(each.prompt_tokens for each in ran), sum(len(each.token_ids) for each in ran)
        cut = sum(each.finish_reason == "length" for each in completions)
        sys.stderr.write(
            f"{read:,} tokens read, {new:,} generated in {seconds:.1f} s ({new / seconds:.1f} tokens/s)"
            f"{f'; {cut:,} cut short by --max-new-tokens' if cut else ''}\n"
        )
