"""What a request's walks will store, told in advance, so that all its walks are looked up as one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from treadle.errors import ArgumentError


@dataclass(frozen=True)
class PrefixSpan:
    """What one walk stores.

    Attributes:
        graph_walk: its name.
        tokens: one number for each slot; a slot that is no token has one that stands for its content.
        cuttable: the walk can begin in the middle; else it is served whole or runs whole.
    """

    graph_walk: str
    tokens: tuple[int, ...]
    cuttable: bool = True


@dataclass(frozen=True)
class PrefixLayout:
    """The walks of a request in their order."""

    spans: tuple[PrefixSpan, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        """All slots."""
        return tuple(chain.from_iterable(span.tokens for span in self.spans))

    def span_at(self, stored: int) -> PrefixSpan | None:
        """The walk that begins behind so many slots; None when none does."""
        for span in self.spans:
            if not stored:
                return span
            stored -= len(span.tokens)
        return None

    def to_wire(self) -> list[dict[str, object]]:
        """As plain values, for a message."""
        return [
            {"graph_walk": span.graph_walk, "tokens": list(span.tokens), "cuttable": span.cuttable}
            for span in self.spans
        ]

    @classmethod
    def from_wire(cls, spans: Sequence[Mapping[str, Any]]) -> PrefixLayout:
        """What `to_wire` said.

        Raises:
            ArgumentError: it said something else.
        """
        try:
            return cls(
                tuple(
                    PrefixSpan(
                        str(span["graph_walk"]), tuple(map(int, span["tokens"])), bool(span["cuttable"])
                    )
                    for span in spans
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"a prefix layout is a list of graph_walk, tokens and cuttable, got {spans!r}"
            ) from error
