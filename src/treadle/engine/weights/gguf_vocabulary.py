"""The vocabulary in the metadata of a GGUF file.

Only byte-level BPE (GGUF `gpt2`) is known. Pre-tokenisers are named by the file; the ones here give the
same ids as `transformers` does for the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Pieces

from treadle.engine.weights.checkpoint import Vocabulary
from treadle.errors import ArtifactError, UnknownNameError

# (key, kind[, default]) -> value
Metadata = Callable[..., Any]

_CONTROL, _USER_DEFINED = 3, 4
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def read_vocabulary(path: Path, metadata: Metadata) -> Vocabulary:
    """The vocabulary; `metadata` gives a value by key, kind and default.

    Raises:
        UnknownNameError: a kind of vocabulary or a pre-tokeniser that is not known.
        ArtifactError: metadata is missing or out of range.
    """
    words = [str(each) for each in metadata("tokenizer.ggml.tokens", list)]
    end = metadata("tokenizer.ggml.eos_token_id", int)
    start = metadata("tokenizer.ggml.bos_token_id", int, end)
    if not 0 <= min(start, end) <= max(start, end) < len(words):
        raise ArtifactError(f"{path}: start token {start} and end token {end} must be below {len(words)}")
    pieces = _pieces(path, metadata, words)
    if metadata("tokenizer.ggml.add_bos_token", bool, False):
        pieces.post_processor = processors.TemplateProcessing(
            single=f"{words[start]} $A", special_tokens=[(words[start], start)]
        )
    return Vocabulary(
        path=path,
        pieces=pieces,
        size=len(words),
        ends=frozenset([end]),
        specials={"bos_token": words[start], "eos_token": words[end]},
        template=metadata("tokenizer.chat_template", str, ""),
    )


def _pieces(path: Path, metadata: Metadata, words: list[str]) -> Pieces:
    _check_known("vocabulary kind", metadata("tokenizer.ggml.model", str), ("gpt2",))
    cut = metadata("tokenizer.ggml.pre", str, "default")
    _check_known("pre-tokeniser", cut, _CUTS)
    merges = [_pair(str(each)) for each in metadata("tokenizer.ggml.merges", list)]
    try:
        pieces = Pieces(models.BPE(vocab={word: at for at, word in enumerate(words)}, merges=merges))
    except Exception as error:  # the library has no kind of its own for a merge of unknown words
        raise ArtifactError(f"{path}: words and merges do not fit ({error}): fetch it again") from error
    _CUTS[cut](pieces)
    pieces.decoder = decoders.ByteLevel()
    kinds = metadata("tokenizer.ggml.token_type", list, [])
    pieces.add_special_tokens(_added(words, kinds, _CONTROL, special=True))
    pieces.add_tokens(_added(words, kinds, _USER_DEFINED, special=False))
    return pieces


def _check_known(what: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise UnknownNameError(what, name, known)


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right


def _added(words: list[str], kinds: Sequence[int], kind: int, *, special: bool) -> list[AddedToken]:
    return [
        AddedToken(word, special=special, normalized=False)
        for word, found in zip(words, kinds, strict=False)
        if found == kind
    ]


def _cut_as_gpt2(pieces: Pieces) -> None:
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)


def _cut_as_qwen2(pieces: Pieces) -> None:
    words = pre_tokenizers.Split(Regex(_QWEN2), behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pieces.pre_tokenizer = pre_tokenizers.Sequence([words, as_bytes])


_CUTS: dict[str, Callable[[Pieces], None]] = {
    "default": _cut_as_gpt2,
    "gpt-2": _cut_as_gpt2,
    "smollm": _cut_as_gpt2,
    "qwen2": _cut_as_qwen2,
}
