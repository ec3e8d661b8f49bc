"""What goes into the engine and what comes out of it: plain records, free of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treadle.errors import ArgumentError

FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True)
class Message:
    """One turn of a chat; `role` is what the model's template knows: system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True)
class GenerationRequest:
    """Text to go on from.

    Attributes:
        id: the caller's own name for the request, given back with its completion.
        prompt: plain text, the messages of a chat (put through the model's template), or token ids.
        max_new_tokens: how many tokens to add at most; at least 1.
        stop: the text ends before the first of these that appears.
        ignore_eos: go on through the model's own end token, for benchmarks.
        temperature: 0 takes the likeliest token each time; above it, tokens are drawn.
        seed: what the draws start from, below 2**63 in size; the same seed draws the same, whatever
            runs beside it.

    Raises:
        ArgumentError: a value of another kind or out of range, or an empty stop string.
    """

    id: str
    prompt: str | tuple[Message, ...] | tuple[int, ...]
    max_new_tokens: int
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        # Kinds too: 2.5 tokens or a stop of 5 would fail only in the middle of a batch.
        new, temperature, seed = self.max_new_tokens, self.temperature, self.seed
        if not _is(new, int) or new < 1:
            raise self._wrong(f"max_new_tokens must be a whole number of at least 1, got {new!r}")
        if not _is(temperature, int, float) or not 0.0 <= temperature < float("inf"):
            raise self._wrong(f"temperature must be 0 or more and finite, got {temperature!r}")
        if not _is(seed, int) or abs(seed) >= 2**63:
            raise self._wrong(f"seed must be a whole number below 2**63 in size, got {seed!r}")
        # A text is a sequence of texts as well: each of its characters would be a stop.
        if not _is(self.stop, tuple, list) or not all(_is(each, str) for each in self.stop):
            raise self._wrong(f"stop must be a tuple of strings, got {self.stop!r}")
        if not all(self.stop):
            raise self._wrong("an empty stop string would end every text at once")

    def _wrong(self, what: str) -> ArgumentError:
        return ArgumentError(f"request {self.id!r}: {what}")


def _is(value: object, *kinds: type) -> bool:
    """`isinstance`, for what a caller may give against the annotations: a type checker believes those."""
    return isinstance(value, kinds)


@dataclass(frozen=True)
class Completion:
    """How a request ended.

    Attributes:
        id: that of the request.
        text: what was generated, special tokens left out, cut before a stop string.
        token_ids: every token that was sampled, the end token included.
        prompt_tokens: tokens of the prompt as the model saw it.
        finish_reason: `stop` at the end token or a stop string, `length`, or `error`.
        error: why it failed; None unless the reason is `error`.
    """

    id: str
    text: str
    token_ids: tuple[int, ...]
    prompt_tokens: int
    finish_reason: FinishReason
    error: str | None = None
