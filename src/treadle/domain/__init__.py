"""Pure functions of rows: tokens, registries, mapping, sums, vectors, clusters, topics. No I/O."""

from treadle.domain.columns import vector_column, vector_matrix
from treadle.domain.growth import HeapsFit, growth_curve, heaps_fit
from treadle.domain.mapping import number_terms
from treadle.domain.reduce import SumFold
from treadle.domain.result import Counters, ProcessResult, Reject, Transform
from treadle.domain.skipgram import SkipGramOptions, init_weights, train_group, training_passes
from treadle.domain.skipgram_step import SkipGramWeights
from treadle.domain.term_registry import TermRegistry
from treadle.domain.text import STOPWORDS, split_passages, strip_stage_directions, tokenize
from treadle.domain.transforms import EmbedTransform, TokenizeTransform

__all__ = [
    "STOPWORDS",
    "Counters",
    "EmbedTransform",
    "HeapsFit",
    "ProcessResult",
    "Reject",
    "SkipGramOptions",
    "SkipGramWeights",
    "SumFold",
    "TermRegistry",
    "TokenizeTransform",
    "Transform",
    "growth_curve",
    "heaps_fit",
    "init_weights",
    "number_terms",
    "split_passages",
    "strip_stage_directions",
    "tokenize",
    "train_group",
    "training_passes",
    "vector_column",
    "vector_matrix",
]
