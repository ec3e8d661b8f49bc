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
        seed: what the draws start from; the same seed draws the same, whatever runs beside it.

    Raises:
        ArgumentError: a number out of range, or an empty stop string.
    """

    id: str
    prompt: str | tuple[Message, ...] | tuple[int, ...]
    max_new_tokens: int
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ArgumentError(
                f"request {self.id!r}: max_new_tokens must be at least 1, got {self.max_new_tokens}"
            )
        if not 0.0 <= self.temperature < float("inf"):
            raise ArgumentError(
                f"request {self.id!r}: temperature must be 0 or more and finite, got {self.temperature}"
            )
        if not all(self.stop):
            raise ArgumentError(f"request {self.id!r}: an empty stop string would end every text at once")


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
