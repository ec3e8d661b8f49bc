"""The transforms of the run type `partition`: rows to tokens, tokens to passage vectors.

A transform is a frozen record of options; `bind` gives it the tables it needs beside the rows and returns the
function of a batch. No row is dropped in silence: what cannot be used is rejected with a reason, what is
empty is counted as filtered.

What works on rows is loaded where rows are met: the options are read, and checked, without any table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from treadle.domain.result import ProcessResult, Reject, Transform
from treadle.domain.term_registry import TermRegistry
from treadle.domain.text import Normalization, tokenize
from treadle.domain.transform_rows import check_columns, kept_rows, row_counters
from treadle.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@dataclass(frozen=True)
class TokenizeTransform:
    """Turns rows with a text into rows with its tokens.

    Output "rows": the columns `keep`, then tokens: list<string>. A row whose text is null or no string, or
    whose group is null, is rejected; one with fewer than `min_tokens` tokens is filtered. The state is a
    `TermRegistry` of the rows given out, by the column `group_by` when that is set (integers or strings).
    """

    text_column: str = "text"
    keep: Sequence[str] = ()
    lowercase: bool = True
    normalize: Normalization = "NFC"
    min_tokens: int = 1
    group_by: str | None = None
    side_inputs: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.normalize not in _FORMS:
            raise ArgumentError(f"normalize must be one of {', '.join(_FORMS)}, got {self.normalize!r}")
        if self.min_tokens < 0:
            raise ArgumentError(f"min_tokens must be at least 0, got {self.min_tokens}")
        _check_keep(self.keep, "tokens")

    def bind(self, side: Mapping[str, pa.Table]) -> Transform:  # noqa: ARG002 - every transform is bound alike
        """Itself: it needs no side input."""
        return self

    def __call__(self, batch: pa.RecordBatch) -> ProcessResult:
        """Tokenize one batch.

        Raises:
            MissingColumnError: a column is missing.
            ArgumentError: a column cannot be grouped by.
        """
        import pyarrow as pa  # here: see above

        self._check(batch)
        groups = batch[self.group_by].to_pylist() if self.group_by else [None] * batch.num_rows
        registry = TermRegistry(batch[self.group_by].type if self.group_by else None)
        chosen: list[int] = []
        lists: list[list[str]] = []
        rejects: list[Reject] = []
        for index, (text, group) in enumerate(zip(batch[self.text_column].to_pylist(), groups, strict=True)):
            if not isinstance(text, str):
                rejects.append(Reject(index, _not_a_string(self.text_column, text)))
            elif self.group_by and group is None:
                rejects.append(Reject(index, f"{self.group_by} is null"))
            elif len(tokens := self._tokens(text)) >= self.min_tokens:
                chosen.append(index)
                lists.append(tokens)
                registry.add(tokens, group)
        rows = kept_rows(batch, self.keep, chosen, "tokens", pa.array(lists, pa.list_(pa.string())))
        counters = row_counters(batch, chosen, rejects)
        return ProcessResult({"rows": rows}, tuple(rejects), counters, registry, kept=chosen)

    def _check(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa  # here: see above

        check_columns(batch, (self.text_column, *self.keep, *([self.group_by] if self.group_by else [])))
        if self.group_by and pa.types.is_nested(kind := batch.schema.field(self.group_by).type):
            raise ArgumentError(
                f"column {self.group_by!r} is {kind}, expected integers or strings to group by"
            )

    def _tokens(self, text: str) -> list[str]:
        return tokenize(text, lowercase=self.lowercase, normalize=self.normalize)


@dataclass(frozen=True)
class EmbedTransform:
    """Turns rows with tokens into rows with a passage vector, the weighted mean of its word vectors.

    Each word weighs smoothing / (smoothing + its relative frequency) (SIF: Arora, Liang, Ma 2017), times its
    residual IDF when the vectors have a column documents. The mean and the first `components` principal
    directions of the word vectors, which all passages share, are removed first: from the words instead of
    from the passages, so that a batch needs no second pass. Side input "vectors": term, count, vector (list
    of float32), and documents: int64 if there is one.

    Output "rows": the columns `keep`, then vector: fixed_size_list<float32>, L2-normalised. A row with null
    tokens is rejected; one without any known word is filtered. With `drop_stopwords`, English function words
    are ignored.
    """

    tokens_column: str = "tokens"
    keep: Sequence[str] = ()
    smoothing: float = 1e-3
    components: int = 1
    drop_stopwords: bool = True
    side_inputs: ClassVar[tuple[str, ...]] = ("vectors",)

    def __post_init__(self) -> None:
        if not 0 < self.smoothing < math.inf:
            raise ArgumentError(f"smoothing must be above 0 and finite, got {self.smoothing}")
        if self.components < 0:
            raise ArgumentError(f"components must be at least 0, got {self.components}")
        _check_keep(self.keep, "vector")

    def bind(self, side: Mapping[str, pa.Table]) -> Transform:
        """The transform over the given word vectors.

        Raises ArgumentError when "vectors" is missing, MissingColumnError when one of its columns is.
        """
        # Here: see above.
        from treadle.domain.bound_embed import BoundEmbed
        from treadle.domain.word_weights import passage_basis

        if "vectors" not in side:
            raise ArgumentError(f"EmbedTransform needs the side input 'vectors', got {sorted(side)}")
        vectors = side["vectors"]
        check_columns(vectors, ("term", "count", "vector"))
        basis = passage_basis(
            vectors,
            smoothing=self.smoothing,
            components=self.components,
            drop_stopwords=self.drop_stopwords,
        )
        return BoundEmbed(self, basis)


def _not_a_string(column: str, value: object) -> str:
    return f"{column} is " + ("null" if value is None else f"{type(value).__name__}, expected a string")


def _check_keep(keep: Sequence[str], made: str) -> None:
    if isinstance(keep, str) or made in keep or len(set(keep)) < len(keep):
        raise ArgumentError(f"keep must be a list of distinct columns without {made!r}, got {keep!r}")
