"""A small SentencePiece vocabulary for tests, trained as that of Llama 2 was."""

import io
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import sentencepiece

Kind = gguf.TokenType

_DOCS = Path(__file__).parents[2] / "docs"
_KINDS = {
    "is_unknown": Kind.UNKNOWN,
    "is_control": Kind.CONTROL,
    "is_byte": Kind.BYTE,
    "is_unused": Kind.UNUSED,
}


@cache
def trained(*, byte_fallback: bool = True, prefixed: bool = True, own: tuple[str, ...] = ()) -> Any:
    """A processor of the library, trained on the documentation; `own` are words that nobody may cut."""
    model = io.BytesIO()
    lines = (line for page in sorted(_DOCS.glob("*.md")) for line in page.read_text().splitlines())
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=model,
        model_type="bpe",
        vocab_size=700,
        byte_fallback=byte_fallback,
        add_dummy_prefix=prefixed,
        user_defined_symbols=list(own),
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        num_threads=1,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def metadata(processor: Any, *, prefixed: bool = True) -> dict[str, Any]:
    """The vocabulary in the words of a GGUF file, behind `tokenizer.ggml.`; no start token before a text."""
    every = range(processor.get_piece_size())
    return {
        "model": "llama",
        "pre": "default",
        "tokens": [processor.id_to_piece(each) for each in every],
        "scores": [processor.get_score(each) for each in every],
        "token_type": [int(_kind(processor, each)) for each in every],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        "add_bos_token": False,
        "add_space_prefix": prefixed,
    }


def _kind(processor: Any, token: int) -> Kind:
    return next((kind for ask, kind in _KINDS.items() if getattr(processor, ask)(token)), Kind.NORMAL)
