"""What a request claims of the KV cache, and what a step asks of it beyond its segments."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.engine.resources.pages import Fork
from treadle.engine.resources.prefix_layout import PrefixLayout
from treadle.engine.resources.step import ResourceStep
from treadle.errors import ArgumentError


@dataclass(frozen=True)
class KvClaim:
    """Override at ingest.

    Attributes:
        tokens: the most that the request will ever store. A fork adds those that it stores itself, and a
            page more when it begins inside one.
        layout: what its walks will store, where there are several, so that they are looked up as one text.

    Raises:
        ArgumentError: fewer than no tokens.
    """

    tokens: int
    layout: PrefixLayout | None = None

    def __post_init__(self) -> None:
        if self.tokens < 0:
            raise ArgumentError(f"a request claims room for 0 or more tokens, got {self.tokens}")


@dataclass(frozen=True)
class KvStep(ResourceStep):
    """A step with forks: those of `before` begin with what is stored before it, those of `after` with all."""

    before: tuple[Fork, ...] = ()
    after: tuple[Fork, ...] = ()

    @property
    def request_ids(self) -> frozenset[str]:
        """Those of its rows, and those that are forked or forked into."""
        forks = (*self.before, *self.after)
        return super().request_ids.union(rid for each in forks for rid in (each.request_id, each.target[0]))


def forks_before(step: ResourceStep) -> tuple[Fork, ...]:
    """The forks that a step makes when it is admitted."""
    return step.before if isinstance(step, KvStep) else ()


def forks_after(step: ResourceStep) -> tuple[Fork, ...]:
    """The forks that a step makes when it commits."""
    return step.after if isinstance(step, KvStep) else ()
