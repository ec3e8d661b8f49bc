"""One request on its way: what it asked for, its tokens so far, and how many of them are computed."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.engine.requests import GenerationRequest


@dataclass(slots=True, eq=False)
class Generation:
    """A request that was found good.

    Attributes:
        rid: the engine's own name for it, unique while the engine lives, whatever the caller's ids.
        request: what was asked.
        tokens: the prompt's, then those that were sampled.
        prompt_tokens: how many of them are the prompt's.
        limit: how many there may be in the end.
        computed: how many have their keys and values stored.
        failure: why the resources could not open it, when they could not.
    """

    rid: str
    request: GenerationRequest
    tokens: list[int]
    prompt_tokens: int
    limit: int
    computed: int = 0
    failure: Exception | None = None

    @property
    def remaining(self) -> int:
        """Tokens still to be computed before the next one can be sampled; 1 while decoding."""
        return len(self.tokens) - self.computed

    @property
    def stored_at_end(self) -> int:
        """Tokens in the cache in the end: all but the last one sampled."""
        return self.limit - 1

    @property
    def new_tokens(self) -> list[int]:
        """What was sampled so far."""
        return self.tokens[self.prompt_tokens :]


@dataclass(frozen=True)
class Row:
    """A generation's part in one step: its next `span` tokens."""

    generation: Generation
    span: int

    @property
    def tokens(self) -> list[int]:
        """The tokens that the step computes."""
        start = self.generation.computed
        return self.generation.tokens[start : start + self.span]

    @property
    def samples(self) -> bool:
        """Whether the step computes all there is, so that the next token can be sampled."""
        return self.span == self.generation.remaining
