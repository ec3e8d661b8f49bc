"""The vocabulary in a Hugging Face folder: `tokenizer.json` and what is said of it beside."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from tokenizers import AddedToken, BertWordPieceTokenizer
from tokenizers import Tokenizer as Pieces

from treadle.engine.weights.checkpoint import Vocabulary, checked
from treadle.engine.weights.json_file import read_bytes, read_object_if_there
from treadle.engine.weights.library_calls import call
from treadle.errors import ArtifactError

PIECES, WORDS = "tokenizer.json", "vocab.txt"
_LARGEST = 2**27  # bytes: four times the largest there is
_NORMALIZERS = ("normalizer", "normalizers")  # where one may stand within another
_FLAGS = ("lstrip", "normalized", "rstrip", "single_word", "special")
_SPECIALS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def read_vocabulary(folder: Path, config: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary of the folder whose `config.json` says `config`.

    Raises:
        ArtifactError: there is none, or a file of it is damaged.
    """
    said = read_object_if_there(folder / "tokenizer_config.json")
    pieces = _pieces(folder, said)
    _add_missing(folder, pieces, said)
    pieces.no_padding()  # how others batch is no property of the text
    pieces.no_truncation()
    specials = _specials(read_object_if_there(folder / "special_tokens_map.json") | said)
    return Vocabulary(
        path=folder,
        pieces=pieces,
        size=1 + max(pieces.get_vocab().values(), default=-1),
        ends=_ends(folder, config) or _named_end(pieces, specials),
        specials=specials,
        template=_template(folder, said),
    )


def _pieces(folder: Path, said: Mapping[str, Any]) -> Pieces:
    if not (folder / PIECES).exists() and (folder / WORDS).exists():
        return _word_pieces(folder / WORDS, said)
    try:
        data = read_bytes(folder / PIECES, _LARGEST)
        _check_character_maps(orjson.loads(data))
        return call(Pieces.from_buffer, data)
    except (OSError, ValueError) as error:
        raise ArtifactError(
            f"{folder / PIECES}: cannot be read as a tokenizer ({error}): fetch it again; where the model "
            "never had one: transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        ) from error


def _check_character_maps(said: object) -> None:
    """A map begins with the size of its index, for which the library makes room without any look."""
    left = [said]
    while left:
        each = left.pop()
        if isinstance(each, list):
            left += each
        elif isinstance(each, dict):
            left += [each.get(key) for key in _NORMALIZERS]
            if not _is_whole(each.get("precompiled_charsmap")):
                raise ValueError("its precompiled_charsmap is truncated")


def _is_whole(character_map: object) -> bool:
    if not isinstance(character_map, str):
        return True
    data = base64.b64decode(character_map)
    return int.from_bytes(data[:4], "little") <= len(data) - 4


def _add_missing(folder: Path, pieces: Pieces, said: Mapping[str, Any]) -> None:
    """Tokens that were added to a model later may stand in the config only."""
    place = f"{folder}: added_tokens_decoder"
    added = checked(place, said.get("added_tokens_decoder"), dict, {})
    for number, token in sorted(added.items(), key=lambda each: (len(each[0]), each[0])):
        text = checked(place, checked(place, token, dict).get("content"), str)
        if pieces.token_to_id(text) is None:
            flags = {name: checked(place, token.get(name), bool, False) for name in _FLAGS}
            pieces.add_tokens([AddedToken(text, **flags)])
            if str(found := pieces.token_to_id(text)) != number:
                raise ArtifactError(
                    f"{place}: the token {text!r} should be {number}, got {found} by {PIECES}"
                )


def _word_pieces(words: Path, said: Mapping[str, Any]) -> Pieces:
    """WordPiece as BERT splits it, for folders that are older than `tokenizer.json`."""
    lowercase = checked(f"{words.parent}: do_lower_case", said.get("do_lower_case"), bool, True)
    try:
        read_bytes(words, _LARGEST)
        pieces: Pieces = call(BertWordPieceTokenizer, str(words), lowercase=lowercase)._tokenizer
    except (OSError, ValueError) as error:
        raise ArtifactError(
            f"{words}: cannot be read as a list of words ({error}): fetch it again"
        ) from error
    return pieces


def _specials(said: Mapping[str, Any]) -> dict[str, str]:
    """Texts of special tokens; each is a text, or an object that has it as `content`."""
    found = {name: said.get(name) for name in _SPECIALS}
    texts = {
        name: token.get("content") if isinstance(token, dict) else token for name, token in found.items()
    }
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def _ends(folder: Path, config: Mapping[str, Any]) -> frozenset[int]:
    generation = read_object_if_there(folder / "generation_config.json")
    found = generation.get("eos_token_id", config.get("eos_token_id"))
    listed = [] if found is None else found if isinstance(found, list) else [found]
    return frozenset(checked(f"{folder}: eos_token_id", each, int) for each in listed)


def _named_end(pieces: Pieces, specials: Mapping[str, str]) -> frozenset[int]:
    end = pieces.token_to_id(specials.get("eos_token", ""))
    return frozenset() if end is None else frozenset([end])


def _template(folder: Path, said: Mapping[str, Any]) -> str:
    """The template of a file of its own, or of the config; of several the one named `default`."""
    apart = folder / "chat_template.jinja"
    if apart.is_file():
        try:
            return read_bytes(apart).decode()
        except (OSError, ValueError) as error:
            raise ArtifactError(f"{apart}: cannot be read as text: {error}") from error
    place, found = f"{folder}: chat_template", said.get("chat_template")
    if isinstance(found, list):
        named = [checked(place, each, dict) for each in found]
        found = next((each.get("template") for each in named if each.get("name") == "default"), None)
    return checked(place, found, str, "")
