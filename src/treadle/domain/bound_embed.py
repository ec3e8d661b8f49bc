"""The transform `embed` at work: tokens to passage vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treadle.domain.columns import usable_tokens, vector_column
from treadle.domain.result import ProcessResult
from treadle.domain.transform_rows import check_columns, kept_rows, row_counters
from treadle.domain.word_weights import PassageBasis

if TYPE_CHECKING:
    from treadle.domain.transforms import EmbedTransform


@dataclass(frozen=True)
class BoundEmbed:
    """The transform `options` over the word vectors of `basis`."""

    options: EmbedTransform
    basis: PassageBasis

    def __call__(self, batch: pa.RecordBatch) -> ProcessResult:
        """Embed one batch. Raises MissingColumnError."""
        options = self.options
        check_columns(batch, (options.tokens_column, *options.keep))
        tokens, rejects = usable_tokens(batch, options.tokens_column)
        chosen, means = self._means(tokens)
        rows = kept_rows(batch, options.keep, chosen, "vector", vector_column(means))
        return ProcessResult({"rows": rows}, rejects, row_counters(batch, chosen, rejects), kept=chosen)

    def _means(self, tokens: pa.Array[Any]) -> tuple[list[int], NDArray[np.float32]]:
        """Rows with a known word, and their normalised sums of weighted vectors."""
        vectors = self.basis.vectors
        owners = pc.list_parent_indices(tokens).to_numpy()
        found = pc.index_in(pc.list_flatten(tokens), value_set=self.basis.terms)
        known = found.is_valid().to_numpy(zero_copy_only=False)
        owners = owners[known]
        if not len(owners):
            return [], np.empty((0, vectors.shape[1]), np.float32)
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        sums = np.add.reduceat(vectors[found.drop_null().to_numpy()], starts, axis=0, dtype=np.float32)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        usable = lengths[:, 0] > 0
        return owners[starts][usable].tolist(), sums[usable] / lengths[usable]
