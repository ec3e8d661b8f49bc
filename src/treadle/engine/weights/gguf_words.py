"""The words of a vocabulary in the metadata of a GGUF file, checked before anything is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, processors
from tokenizers import Tokenizer as Pieces

from treadle.errors import ArtifactError

# (key, kind[, default]) -> value
Metadata = Callable[..., Any]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6

# Far above any vocabulary there is: what is made of the words takes time by their length, squared.
_LONGEST, _MOST_CHARACTERS = 1024, 2**24


@dataclass(frozen=True)
class Words:
    """Words by id, and their kinds, as `TokenType` of the package `gguf` numbers them."""

    path: Path
    texts: Sequence[str]
    kinds: Sequence[int]

    @cached_property
    def ids(self) -> dict[str, int]:
        """Word -> id."""
        return {text: at for at, text in enumerate(self.texts)}

    def of_kind(self, kind: int) -> list[str]:
        """Words of one kind, in the order of their ids."""
        return [text for text, found in zip(self.texts, self.kinds, strict=True) if found == kind]

    def token(self, metadata: Metadata, name: str, default: int | None = None) -> int:
        """The id that the metadata gives a special token.

        Raises:
            ArtifactError: it is missing and has no default, or no word has it.
        """
        found: int = metadata(f"tokenizer.ggml.{name}_token_id", int, default)
        if not 0 <= found < len(self.texts):
            raise ArtifactError(
                f"{self.path}: {name} token {found} must be from 0 and below {len(self.texts)}"
            )
        return found


def read_words(path: Path, metadata: Metadata) -> Words:
    """The words of a file; `metadata` gives a value by key, kind and default.

    Raises:
        ArtifactError: there are none, or they are of another kind, or no words of any vocabulary.
    """
    texts = read_list(path, metadata, "tokens", str)
    kinds = read_list(path, metadata, "token_type", int, [NORMAL] * len(texts))
    words = Words(path, texts, kinds)
    if len(kinds) != len(texts):
        raise ArtifactError(
            f"{path}: {len(texts)} tokens have {len(kinds)} kinds (tokenizer.ggml.token_type)"
        )
    if len(words.ids) < len(texts):
        again = next(text for at, text in enumerate(texts) if words.ids[text] != at)
        raise ArtifactError(f"{path}: the token {again!r} stands in tokenizer.ggml.tokens twice")
    _check_sizes(words)
    return words


def read_list(
    path: Path, metadata: Metadata, name: str, kind: type, default: list[Any] | None = None
) -> list[Any]:
    """The list `tokenizer.ggml.NAME`, all of one kind.

    Raises:
        ArtifactError: it is missing and has no default, or holds something else.
    """
    found: list[Any] = metadata(f"tokenizer.ggml.{name}", list, default)
    wrong = [each for each in found if type(each) is not kind]
    if wrong:
        raise ArtifactError(f"{path}: tokenizer.ggml.{name} should be all {kind.__name__}, got {wrong[0]!r}")
    return found


def add_to(pieces: Pieces, words: Words) -> None:
    """Let the words that are no pieces of text be found as they stand."""
    for kind, special in ((UNKNOWN, True), (CONTROL, True), (USER_DEFINED, False)):
        tokens = [AddedToken(text, special=special, normalized=False) for text in words.of_kind(kind)]
        (pieces.add_special_tokens if special else pieces.add_tokens)(tokens)


def surround(pieces: Pieces, before: Sequence[int], behind: Sequence[int]) -> None:
    """Put tokens, by their ids, around every text."""
    if not before and not behind:
        return
    # By number, since the words themselves may hold what a template takes for its own.
    names = {token: f"token{token}" for token in (*before, *behind)}
    single = [*(names[token] for token in before), "$A", *(names[token] for token in behind)]
    special = [{"id": name, "ids": [token], "tokens": [name]} for token, name in names.items()]
    pieces.post_processor = processors.TemplateProcessing(single=single, special_tokens=special)


def _check_sizes(words: Words) -> None:
    longest = max(map(len, words.texts), default=0)
    if not words.texts or longest > _LONGEST or sum(map(len, words.texts)) > _MOST_CHARACTERS:
        raise ArtifactError(
            f"{words.path}: {len(words.texts):,} tokens, the longest of {longest:,} characters, are no "
            f"vocabulary: known are at most {_LONGEST:,}, and {_MOST_CHARACTERS:,} in all"
        )
