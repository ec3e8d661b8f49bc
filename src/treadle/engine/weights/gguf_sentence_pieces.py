"""SentencePiece's BPE (Kudo and Richardson 2018) as GGUF files have it (their kind `llama`), by scores.

A score says when a word is made: of all neighbours that make a word together, those of the highest score
become one first. BPE merges say the same of pairs, so each word is every pair that makes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tokenizers import Tokenizer as Pieces
from tokenizers import decoders, models, normalizers

from treadle.engine.weights.gguf_words import BYTE, NORMAL, Metadata, Words, read_list
from treadle.errors import ArtifactError

_SPACE = "\u2581"  # how words write a space


def read_sentence_pieces(words: Words, metadata: Metadata) -> tuple[Pieces, bool]:
    """What splits text, and whether a start token stands before each where the file does not say.

    Unless the file says otherwise a space is put before each text, and again behind each special token, as
    llama.cpp does. It is taken away again at the beginning of a text that is decoded.

    Raises:
        ArtifactError: scores are missing or do not fit, or text would be changed in a way not known here.
    """
    for key in ("remove_extra_whitespaces", "precompiled_charsmap"):
        if metadata(f"tokenizer.ggml.{key}", object, None):
            raise ArtifactError(f"{words.path}: tokenizer.ggml.{key} is not known here for words with scores")
    prefixed = metadata("tokenizer.ggml.add_space_prefix", bool, True)
    unknown = words.texts[words.token(metadata, "unknown", 0)]
    fallback = bool(words.of_kind(BYTE))
    pieces = Pieces(
        models.BPE(
            vocab=words.ids,
            merges=_merges(words, _scores(words, metadata)),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=fallback,
        )
    )
    spaces = [normalizers.Replace(" ", _SPACE)]
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), *spaces] if prefixed else spaces)
    joined = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    pieces.decoder = decoders.Sequence([*joined, decoders.Strip(" ", 1, 0)] if prefixed else joined)
    return pieces, True


def _scores(words: Words, metadata: Metadata) -> list[float]:
    scores: list[float] = read_list(words.path, metadata, "scores", float)
    if len(scores) != len(words.texts):
        raise ArtifactError(
            f"{words.path}: {len(words.texts)} tokens have {len(scores)} scores (tokenizer.ggml.scores)"
        )
    if any(score != score for score in scores):
        raise ArtifactError(f"{words.path}: a score in tokenizer.ggml.scores is not a number")
    return scores


def _merges(words: Words, scores: list[float]) -> list[tuple[str, str]]:
    normal = [at for at, kind in enumerate(words.kinds) if kind == NORMAL]
    in_order = sorted(normal, key=lambda at: -scores[at])
    known = {words.texts[at] for at in normal}
    return [pair for at in in_order for pair in _pairs(words.texts[at], known)]


def _pairs(word: str, known: set[str]) -> Iterator[tuple[str, str]]:
    for at in range(1, len(word)):
        if word[:at] in known and word[at:] in known:
            yield word[:at], word[at:]
