"""The face of encoders: load a model once, turn any number of texts into vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import normalize

from treadle.engine.catalog import locate_encoder
from treadle.engine.models.architectures import find_encoder
from treadle.engine.models.bert import Bert
from treadle.engine.threads import set_threads
from treadle.engine.tokenizer import Tokenizer, load_tokenizer
from treadle.engine.weights import open_checkpoint
from treadle.errors import ArgumentError

# Tokens of one pass: enough to keep the processor busy, few enough to stay in its cache.
_AT_ONCE = 2048


class Encoder:
    """A loaded model that turns texts into vectors, such that texts of like meaning lie near.

    Use `Encoder.load`; the constructor takes parts that were built apart.
    """

    def __init__(self, model: Bert, tokenizer: Tokenizer) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, model: str, *, threads: int | None = None) -> Encoder:
        """Load a model from a Hugging Face folder, or by a name: `all-minilm-l6-v2`.

        Args:
            model: path or name.
            threads: of torch, for the whole process; None leaves the setting alone.

        Raises:
            UnknownNameError: a name or an architecture that is not known.
            UsageError: the package that carries a named model is not installed, it is no encoder, or there
                is nothing at the path.
            ArtifactError: a file is missing, truncated, or does not fit what it says.
            ArgumentError: threads out of range.
        """
        set_threads(threads)
        checkpoint = open_checkpoint(locate_encoder(model))
        load, tokenizer = find_encoder(checkpoint), load_tokenizer(checkpoint)
        return cls(load(checkpoint), tokenizer)

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return self.model.config.width

    @property
    def context(self) -> int:
        """How many tokens a text may have, those that stand around each included."""
        return self.model.config.context

    def embed(self, texts: Sequence[str], *, truncate: bool = False) -> npt.NDArray[np.float32]:
        """Float32 (texts, width): a vector of length 1 for each text, whatever else is in the batch.

        Args:
            texts: what to encode; an empty text has a vector too.
            truncate: read only the first `context` tokens of longer texts, instead of refusing them.

        Raises:
            ArgumentError: one is no text or no valid Unicode, too long, or without any token; names it by its
                place.
        """
        # A text is a sequence of texts as well: each of its characters would get a vector.
        if isinstance(texts, str):
            raise ArgumentError("expected a list of texts, got a single text: put it into a list")
        ids = [self._ids(place, text, truncate) for place, text in enumerate(texts)]
        vectors = np.empty((len(ids), self.width), np.float32)
        with torch.inference_mode():
            for places in _batches(ids):
                found = self.model.encode([ids[place] for place in places])
                vectors[places] = normalize(found, dim=1).numpy()
        return vectors

    def _ids(self, place: int, text: str, truncate: bool) -> list[int]:
        if not isinstance(text, str):
            raise ArgumentError(f"text {place}: expected a text, got {text!r}")
        try:
            ids = self.tokenizer.encode(text)
        except ArgumentError as error:
            raise ArgumentError(f"text {place}: {error}") from error
        if not ids:
            raise ArgumentError(f"text {place} has no tokens, and so no vector: {text!r}")
        if len(ids) <= self.context:
            return ids
        if not truncate:
            raise ArgumentError(
                f"text {place} has {len(ids)} tokens, the model reads {self.context}: "
                "split it, or read only its beginning by truncate=True"
            )
        return [*ids[: self.context - 1], ids[-1]]  # the last one is the token that ends every text


def _batches(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of texts, those of one length side by side, so many that they make a pass."""
    batch: list[int] = []
    tokens = 0
    for place in sorted(range(len(ids)), key=lambda each: len(ids[each])):
        if batch and tokens + len(ids[place]) > _AT_ONCE:
            yield batch
            batch, tokens = [], 0
        batch.append(place)
        tokens += len(ids[place])
    if batch:
        yield batch
