"""One request on its way: what it asked for, its tokens so far, and how many of them are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from treadle.engine.requests import Completion, Delta, FinishReason, GenerationRequest, TokenLogprob
from treadle.engine.resources.sampling import Pick
from treadle.engine.resources.step import StepContext
from treadle.engine.text import GrowingText

PREFILL, DECODE = "prefill", "decode"


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
        seconds: its share of the time of its steps.
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
    seconds: float = 0.0

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
            seconds=self.seconds,
        )


@dataclass(frozen=True)
class Row:
    """A generation's part in one step.

    Attributes:
        generation: whose it is.
        start: how many of its tokens are computed before.
        span: how many the step computes.
        samples: these are all that there are, so that the next token can be sampled.
    """

    generation: Generation
    start: int
    span: int
    samples: bool

    @property
    def end(self) -> int:
        """How many tokens are computed after the step."""
        return self.start + self.span

    @property
    def tokens(self) -> list[int]:
        """The tokens that the step computes."""
        return self.generation.tokens[self.start : self.end]

    @property
    def walk(self) -> str:
        """The way through the model: `decode` for a token that was sampled here, else `prefill`."""
        return DECODE if self.start >= self.generation.prompt_tokens else PREFILL


def context_of(rows: Sequence[Row], *, padding: Sequence[str] = (), slot: int | None = None) -> StepContext:
    """The context of a step of these rows: of one walk, or of several combined."""
    walks = {row.generation.rid: row.walk for row in rows}
    combined = len(set(walks.values())) > 1
    return StepContext(
        request_ids=tuple(walks),
        padded_request_ids=(*walks, *padding),
        graph_walk=None if combined else next(iter(walks.values()), None),
        request_walks=walks if combined else {},
        slot=slot,
    )
