"""One request on its way: what it asked for, its tokens so far, and how many of them are computed."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.engine.requests import Completion, Delta, FinishReason, GenerationRequest, TokenLogprob
from treadle.engine.resources.sampling import Pick
from treadle.engine.text import GrowingText


@dataclass(slots=True, eq=False)
class Generation:
    """A request that was found good.

    Attributes:
        rid: the engine's own name for it, unique while the engine lives, whatever the caller's ids.
        request: what was asked.
        tokens: the prompt's, then those that were sampled.
        prompt_tokens: how many of them are the prompt's.
        limit: how many there may be in the end.
        ends: the tokens that end it.
        text: that of the new tokens.
        streamed: whether each step tells what it added.
        computed: how many have their keys and values stored.
        failure: why the resources could not open it, when they could not.
        logprobs: of the new tokens, when the request asks for them.
    """

    rid: str
    request: GenerationRequest
    tokens: list[int]
    prompt_tokens: int
    limit: int
    ends: frozenset[int]
    text: GrowingText
    streamed: bool = False
    computed: int = 0
    failure: Exception | None = None
    logprobs: list[TokenLogprob] = field(default_factory=list)

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

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why its last token ends it; None while it goes on."""
        if self.tokens[-1] in self.ends or self.text.stopped:
            return "stop"
        return "length" if len(self.tokens) == self.limit else None

    def take(self, pick: Pick) -> None:
        """One more token was sampled."""
        self.tokens.append(pick.token)
        self.text.add(pick.token)
        if pick.logprob is not None:
            self.logprobs.append(TokenLogprob(pick.token, pick.logprob, pick.top))

    def delta(self) -> Delta:
        """What the last token added."""
        return Delta(self.request.id, self.text.take(), (self.tokens[-1],), tuple(self.logprobs[-1:]))

    def completion(self, reason: FinishReason, error: str | None) -> Completion:
        """How it ended, with all that was sampled."""
        self.text.finish()
        return Completion(
            id=self.request.id,
            text=self.text.text,
            token_ids=tuple(self.new_tokens),
            prompt_tokens=self.prompt_tokens,
            finish_reason=reason,
            error=error,
            logprobs=tuple(self.logprobs),
        )


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
