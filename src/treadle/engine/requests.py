"""What goes into the engine and what comes out of it: plain records, free of torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from treadle.errors import ArgumentError

FinishReason = Literal["stop", "length", "abort", "error"]
# As many alternatives as the OpenAI interface gives at most.
_MOST_ALTERNATIVES = 20


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
        stop_tokens: ids that end the text as the model's own end token does.
        ignore_eos: go on through the model's own end tokens, for benchmarks.
        temperature: 0 takes the likeliest token each time; above it, tokens are drawn.
        top_k: draw among so many of the likeliest; 0 among all.
        top_p: draw among the likeliest that together reach this chance, in (0, 1].
        min_p: draw among tokens at least so likely as this share of the likeliest one's chance, in [0, 1].
        repetition_penalty: divides the positive scores of tokens that appeared already, in the prompt too,
            and multiplies the negative ones (Keskar et al. 2019); 1 leaves them alone.
        seed: what the draws start from, below 2**63 in size; the same seed draws the same, whatever
            runs beside it.
        logprobs: how many alternatives to tell with the log probability of each token, 0 for that of the
            token alone, at most 20; None tells none.

    Raises:
        ArgumentError: a value of another kind or out of range, or an empty stop string.
    """

    id: str
    prompt: str | tuple[Message, ...] | tuple[int, ...]
    max_new_tokens: int
    stop: tuple[str, ...] = ()
    stop_tokens: tuple[int, ...] = ()
    ignore_eos: bool = False
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    logprobs: int | None = None

    def __post_init__(self) -> None:
        # Kinds too: 2.5 tokens or a stop of 5 would fail only in the middle of a batch.
        self._check_count("max_new_tokens", self.max_new_tokens, least=1)
        self._check_count("top_k", self.top_k, least=0)
        if self.logprobs is not None:
            self._check_count("logprobs", self.logprobs, least=0, most=_MOST_ALTERNATIVES)
        if not _is(self.seed, int) or abs(self.seed) >= 2**63:
            raise self._wrong(f"seed must be a whole number below 2**63 in size, got {self.seed!r}")
        self._check_numbers()
        self._check_stops()

    def _check_count(self, name: str, value: object, *, least: int, most: int | None = None) -> None:
        if not isinstance(value, int) or value < least or (most is not None and value > most):
            limits = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise self._wrong(f"{name} must be a whole number {limits}, got {value!r}")

    def _check_numbers(self) -> None:
        if not _is(self.temperature, int, float) or not 0.0 <= self.temperature < float("inf"):
            raise self._wrong(f"temperature must be 0 or more and finite, got {self.temperature!r}")
        if not _is(self.top_p, int, float) or not 0.0 < self.top_p <= 1.0:
            raise self._wrong(f"top_p must be above 0 and at most 1, got {self.top_p!r}")
        if not _is(self.min_p, int, float) or not 0.0 <= self.min_p <= 1.0:
            raise self._wrong(f"min_p must be from 0 to 1, got {self.min_p!r}")
        penalty = self.repetition_penalty
        if not _is(penalty, int, float) or not 0.0 < penalty < float("inf"):
            raise self._wrong(f"repetition_penalty must be above 0 and finite, got {penalty!r}")

    def _check_stops(self) -> None:
        # A text is a sequence of texts as well: each of its characters would be a stop.
        if not _is(self.stop, tuple, list) or not all(_is(each, str) for each in self.stop):
            raise self._wrong(f"stop must be a tuple of strings, got {self.stop!r}")
        if not all(self.stop):
            raise self._wrong("an empty stop string would end every text at once")
        if not _is(self.stop_tokens, tuple, list) or not all(_is(each, int) for each in self.stop_tokens):
            raise self._wrong(f"stop_tokens must be a tuple of token ids, got {self.stop_tokens!r}")

    def _wrong(self, what: str) -> ArgumentError:
        return ArgumentError(f"request {self.id!r}: {what}")


def _is(value: object, *kinds: type) -> bool:
    """`isinstance`, for what a caller may give against the annotations: a type checker believes those."""
    return isinstance(value, kinds)


@dataclass(frozen=True)
class TokenLogprob:
    """How likely the model found a token: natural logarithms of its chance among all, before any sampling
    option changes the scores.

    Attributes:
        token: its id.
        logprob: of that token.
        top: the likeliest tokens with theirs, best first, as many as were asked for.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Delta:
    """What a step added to a request that is streamed.

    Attributes:
        id: that of the request.
        text: the new part; what may become a stop string, or half a character, is held back for later.
        token_ids: the new tokens.
        logprobs: of these, when the request asks for them.
    """

    id: str
    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True)
class Completion:
    """How a request ended.

    Attributes:
        id: that of the request.
        text: what was generated, special tokens left out, cut before a stop string.
        token_ids: every token that was sampled, the end token included.
        prompt_tokens: tokens of the prompt as the model saw it.
        finish_reason: `stop` at an end token or a stop string, `length`, `abort`, or `error`.
        error: why it failed; None unless the reason is `error`.
        logprobs: one for each of `token_ids`, when the request asks for them.
        seconds: its share of the time that its steps took, by tokens; those of all requests add up to the
            time that the engine was busy. Not compared.
    """

    id: str
    text: str
    token_ids: tuple[int, ...]
    prompt_tokens: int
    finish_reason: FinishReason
    error: str | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    seconds: float = field(default=0.0, compare=False)
