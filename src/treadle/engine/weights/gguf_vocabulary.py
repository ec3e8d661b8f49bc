"""The vocabulary in the metadata of a GGUF file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer as Pieces

from treadle.engine.weights.checkpoint import Vocabulary
from treadle.engine.weights.gguf_byte_pieces import read_byte_pieces
from treadle.engine.weights.gguf_sentence_pieces import read_sentence_pieces
from treadle.engine.weights.gguf_words import Metadata, Words, add_to, read_words, surround
from treadle.kernel import Registry

# -> what splits text, and whether a start token stands before each where the file does not say
ReadPieces = Callable[[Words, Metadata], tuple[Pieces, bool]]

kinds: Registry[ReadPieces] = Registry("vocabulary kind")
kinds.register("gpt2", read_byte_pieces)
kinds.register("llama", read_sentence_pieces)

# Chat models end a turn otherwise than a text.
_ENDS = ("eot", "eom")


def read_vocabulary(path: Path, metadata: Metadata) -> Vocabulary:
    """The vocabulary; `metadata` gives a value by key, kind and default.

    Raises:
        UnknownNameError: a kind of vocabulary or a pre-tokeniser that is not known.
        ArtifactError: metadata is missing, out of range, or does not fit together.
    """
    read_pieces = kinds.get(metadata("tokenizer.ggml.model", str))
    words = read_words(path, metadata)
    end = words.token(metadata, "eos")
    start = words.token(metadata, "bos", end)
    pieces, starts = read_pieces(words, metadata)
    add_to(pieces, words)
    surround(
        pieces,
        [start] * metadata("tokenizer.ggml.add_bos_token", bool, starts),
        [end] * metadata("tokenizer.ggml.add_eos_token", bool, False),
    )
    return Vocabulary(
        path=path,
        pieces=pieces,
        size=len(words.texts),
        ends=frozenset([end, *(words.token(metadata, name, end) for name in _ENDS)]),
        specials={"bos_token": words.texts[start], "eos_token": words.texts[end]},
        template=metadata("tokenizer.chat_template", str, ""),
    )
