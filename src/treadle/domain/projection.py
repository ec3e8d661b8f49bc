"""A map of vectors in the plane: t-SNE (van der Maaten, Hinton 2008) from the principal components."""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np
from numpy.typing import NDArray

from treadle.errors import ArgumentError, MissingExtraError

_PERPLEXITY = 30.0
_ITERATIONS = 600
_ANGLE = 0.6
"""Half the time of scikit-learn's defaults, and as many neighbours of the same cluster."""
_FEWEST_ROWS = 5


def project(vectors: NDArray[np.float32], seed: int = 0) -> NDArray[np.float32]:
    """Places (n, 2) float32 of vectors (n, d): near vectors lie near each other.

    Raises ArgumentError below 5 rows, MissingExtraError without scikit-learn.
    """
    if len(vectors) < _FEWEST_ROWS:
        raise ArgumentError(f"a projection needs at least {_FEWEST_ROWS} rows, got {len(vectors)}")
    try:
        from sklearn.manifold import TSNE  # optional: only the demo draws maps
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "demo", "the topic map") from error
    _load_torch_whole()
    perplexity = min(_PERPLEXITY, (len(vectors) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="pca", max_iter=_ITERATIONS, angle=_ANGLE, random_state=seed)
    return np.asarray(tsne.fit_transform(vectors), np.float32)


def _load_torch_whole() -> None:
    """Where torch is, load it or wait until another thread has.

    scikit-learn looks into `sys.modules` for it, and fails on one that another step is just loading.
    """
    if importlib.util.find_spec("torch") is not None:
        importlib.import_module("torch")
