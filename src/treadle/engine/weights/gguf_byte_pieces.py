"""Byte-level BPE as GGUF files have it (their kind `gpt2`): merges, and the name of a way to cut text.

The cuts, and the settings that go with them, are those that llama.cpp, which defines the format, has under
the same name, and that the models were trained with. A file without a name is cut as GPT-2 cuts.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Pieces

from treadle.engine.weights.gguf_words import Metadata, Words, read_list
from treadle.engine.weights.library_calls import call
from treadle.errors import ArtifactError
from treadle.kernel import Registry

_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASES = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
_SPACES = r"\s+(?!\S)|\s+"
_SIGNS = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|{_SPACES}"

_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"
_QWEN2 = rf"{_ENDINGS}|{_LETTERS}|\p{{N}}|{_SIGNS}"
_LLAMA3 = rf"{_ENDINGS}|{_LETTERS}|\p{{N}}{{1,3}}|{_SIGNS}"
_TEKKEN = rf"{_CASES}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|{_SPACES}"


@dataclass(frozen=True)
class Cut:
    """How text is cut before words are made of the parts.

    Attributes:
        patterns: each cuts what the one before it left; its matches, and what is between them.
        whole: a part that is a word is taken as it is, whatever the merges would make of it.
        start: whether a start token stands before each text where the file does not say.
    """

    patterns: tuple[str, ...]
    whole: bool = False
    start: bool = False


cuts: Registry[Cut] = Registry("pre-tokeniser")

for _cut, _names in (
    (Cut((_GPT2,)), ("default", "gpt-2")),
    (Cut((r"\p{N}", _GPT2)), ("smollm", "starcoder", "refact", "codeshell", "minerva-7b")),
    (Cut((_QWEN2,)), ("qwen2", "deepseek-r1-qwen")),
    (Cut((_LLAMA3,), whole=True, start=True), ("llama-bpe", "llama3", "llama-v3", "falcon3")),
    (Cut((_TEKKEN,), whole=True, start=True), ("tekken",)),
):
    for _name in _names:
        cuts.register(_name, _cut)


def read_byte_pieces(words: Words, metadata: Metadata) -> tuple[Pieces, bool]:
    """What splits text, and whether a start token stands before each where the file does not say.

    Raises:
        UnknownNameError: a pre-tokeniser that is not known.
        ArtifactError: words and merges do not fit.
    """
    cut = cuts.get(metadata("tokenizer.ggml.pre", str, "default"))
    merges = [_pair(each) for each in read_list(words.path, metadata, "merges", str)]
    try:
        model = call(models.BPE, vocab=words.ids, merges=merges, ignore_merges=cut.whole)
    except ValueError as error:
        raise ArtifactError(f"{words.path}: words and merges do not fit ({error}): fetch it again") from error
    pieces = Pieces(model)
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    parts = [pre_tokenizers.Split(Regex(each), behavior="isolated") for each in cut.patterns]
    pieces.pre_tokenizer = pre_tokenizers.Sequence([*parts, as_bytes])
    pieces.decoder = decoders.ByteLevel()
    return pieces, cut.start


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right
