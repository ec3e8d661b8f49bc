"""Pure functions of rows: tokens, registries, mapping, sums, vectors, clusters, topics. No I/O.

The names are loaded when they are asked for: a command needs few of them, and some need no tables.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.domain.columns import vector_column, vector_matrix
    from treadle.domain.growth import HeapsFit, growth_curve, heaps_fit
    from treadle.domain.mapping import number_terms
    from treadle.domain.reduce import SumFold
    from treadle.domain.result import Counters, ProcessResult, Reject, Transform
    from treadle.domain.skipgram import init_weights, train_group, training_passes
    from treadle.domain.skipgram_options import SkipGramOptions
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

_MODULES = {
    "columns": ("vector_column", "vector_matrix"),
    "growth": ("HeapsFit", "growth_curve", "heaps_fit"),
    "mapping": ("number_terms",),
    "reduce": ("SumFold",),
    "result": ("Counters", "ProcessResult", "Reject", "Transform"),
    "skipgram": ("init_weights", "train_group", "training_passes"),
    "skipgram_options": ("SkipGramOptions",),
    "skipgram_step": ("SkipGramWeights",),
    "term_registry": ("TermRegistry",),
    "text": ("STOPWORDS", "split_passages", "strip_stage_directions", "tokenize"),
    "transforms": ("EmbedTransform", "TokenizeTransform"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
