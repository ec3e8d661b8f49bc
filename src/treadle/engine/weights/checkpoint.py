"""What a model is made from, wherever it lies: config values, tensors, a vocabulary.

A checkpoint speaks one language, that of Hugging Face: the keys of `config.json` and the names of
tensors there. A reader of another format translates, so that a model family is written once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from tokenizers import Tokenizer as Pieces
from torch import Tensor

from treadle.engine.weights.library_calls import call
from treadle.errors import ArtifactError

T = TypeVar("T")

# A tokenizer that is broken, but not in its syntax, fails on any text: rather at load than in a request.
_PROBE = "The 1st, naïve text\n"


@dataclass(frozen=True)
class Vocabulary:
    """How text becomes ids and back, and how a chat becomes text.

    Attributes:
        path: where it was read, for messages.
        pieces: splits text; what goes around every text, such as a start token, is its post-processor.
        size: ids run from 0 to here, exclusive.
        ends: the tokens that end a text.
        specials: what templates call `bos_token`, `eos_token` and so on.
        template: the chat template, a Jinja program; empty when there is none.
    """

    path: Path
    pieces: Pieces
    size: int
    ends: frozenset[int]
    specials: dict[str, str]
    template: str = ""

    def __post_init__(self) -> None:
        try:
            call(self.pieces.decode, call(self.pieces.encode, _PROBE).ids)
        except ValueError as error:
            raise ArtifactError(
                f"{self.path}: its tokenizer fails on {_PROBE!r}: {error}: fetch it again"
            ) from error
        if wrong := sorted(each for each in self.ends if not 0 <= each < self.size):
            raise ArtifactError(f"{self.path}: end tokens {wrong} must be from 0 and below {self.size}")


class Checkpoint(Protocol):
    """An opened model; tensors are read when asked for."""

    @property
    def path(self) -> Path:
        """The file or the folder, for messages."""

    @property
    def architecture(self) -> str:
        """What the checkpoint calls its family, such as `LlamaForCausalLM`."""

    @property
    def names(self) -> Collection[str]:
        """Names of all tensors."""

    @overload
    def value(self, key: str, kind: type[T]) -> T: ...
    @overload
    def value(self, key: str, kind: type[T], default: T) -> T: ...
    def value(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The config value under `key`; a null counts as missing, a whole number as a float as well.

        Raises:
            ArtifactError: it is missing and has no default, or is of another kind, or is not finite.
        """

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor of that name as float32; not to be written to, its memory may be the file's.

        Raises:
            ArtifactError: there is none, of another shape, or stored in a way that is not known.
        """

    def vocabulary(self) -> Vocabulary:
        """The vocabulary that belongs to the weights.

        Raises:
            UnknownNameError: a kind of vocabulary that is not known.
            ArtifactError: it is missing or damaged.
        """


def checked(place: str, found: Any, kind: type[T], default: T | None = None) -> T:
    """`found`, or `default` where it is None, as a `kind`; see `Checkpoint.value`.

    `place` is the path and what was looked up there, for the message.
    """
    value = default if found is None else found
    if kind is float and type(value) is int:
        value = float(value)
    # In Python a bool is an int; in a config it is a mistake.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ArtifactError(f"{place} should be {kind.__name__}, got {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ArtifactError(f"{place} should be a finite number, got {value}")
    return value


@dataclass
class Reading:
    """The tensors of a checkpoint as a model takes them, so that none is left over unnoticed."""

    checkpoint: Checkpoint
    taken: set[str] = field(default_factory=set)

    def load(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `Checkpoint.tensor`."""
        self.taken.add(name)
        return self.checkpoint.tensor(name, shape)

    def check_all_taken(self, family: str, spare: Iterable[str] = ()) -> None:
        """Refuse tensors that nobody took; `spare` are names that a model may hold and never needs.

        Biases, adapters or layers left out would give another model's output without any error.

        Raises:
            ArtifactError: there are some; names the first.
        """
        left = sorted(set(self.checkpoint.names) - self.taken - set(spare))
        if left:
            raise ArtifactError(
                f"{self.checkpoint.path}: {len(left)} tensors belong to no part of a {family} model as known "
                f"here, the first is {left[0]!r}: the file is damaged, or of a model with more parts"
            )
