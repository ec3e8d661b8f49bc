"""How word vectors are trained."""

from __future__ import annotations

from dataclasses import dataclass, fields

from treadle.errors import ArgumentError


@dataclass(frozen=True)
class SkipGramOptions:
    """How to train.

    `window`: the reach of each position is drawn from 1 to window. `subsample`: the frequency above which
    occurrences are thinned out. `batch_pairs`: about how many pairs share one update. `learning_rate` falls
    linearly to almost nothing.
    """

    dimensions: int = 96
    window: int = 10
    negatives: int = 8
    epochs: int = 5
    learning_rate: float = 0.05
    subsample: float = 3e-4
    batch_pairs: int = 8192

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (value > 0 or (value == 0 and field.name == "subsample")):
                raise ArgumentError(f"{field.name} must be above 0, got {value}")
