"""Text to token ids and back, and chats to text, all from what a GGUF file says.

Only byte-level BPE vocabularies (GGUF `gpt2`) are known. Pre-tokenisers are named by the file; the
ones here give the same ids as `transformers` does for the same file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Bpe

from treadle.engine.requests import Message
from treadle.engine.weights import Checkpoint
from treadle.errors import ArgumentError, ArtifactError, UnknownNameError

_CONTROL, _USER_DEFINED = 3, 4
_PRE_TOKENIZERS = ("default", "gpt-2", "smollm")


class Tokenizer:
    """The tokenizer of a checkpoint.

    Attributes:
        size: ids run from 0 to here, exclusive.
        end: the token that ends a text.

    Raises:
        UnknownNameError: a kind of vocabulary or a pre-tokeniser that is not known.
        ArtifactError: metadata is missing or out of range, or the chat template is none.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        words = [str(each) for each in checkpoint.value("tokenizer.ggml.tokens", list)]
        self.size = len(words)
        self.end = checkpoint.value("tokenizer.ggml.eos_token_id", int)
        start = checkpoint.value("tokenizer.ggml.bos_token_id", int, self.end)
        self._prefix = [start] if checkpoint.value("tokenizer.ggml.add_bos_token", bool, False) else []
        if not 0 <= min(start, self.end) <= max(start, self.end) < self.size:
            raise ArtifactError(
                f"{checkpoint.path}: start token {start} and end token {self.end} must be below {self.size}"
            )
        self._specials = {"bos_token": words[start], "eos_token": words[self.end]}
        self._bpe = _bpe(checkpoint, words)
        self._template = _template(checkpoint)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; special tokens written out in it are recognised.

        Raises:
            ArgumentError: the text holds half a surrogate pair, as broken JSON does.
        """
        return self._prefix + self._ids(text)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Ids of a chat, up to where the assistant's answer begins.

        Raises:
            ArgumentError: as for `encode`, or as for `render`.
        """
        return self._ids(self.render(messages))

    def render(self, messages: Sequence[Message]) -> str:
        """A chat as the text that the model was trained on.

        Raises:
            ArgumentError: the model has no chat template, or it refuses these messages.
        """
        if self._template is None:
            raise ArgumentError("this model has no chat template: give a plain prompt")
        turns = [{"role": each.role, "content": each.content} for each in messages]
        try:
            return self._template.render(messages=turns, add_generation_prompt=True, **self._specials)
        except Exception as error:  # a template is a program, and fails as programs do
            raise ArgumentError(f"the chat template refuses these messages: {error}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens left out."""
        return self._bpe.decode(list(ids), skip_special_tokens=True)

    def _ids(self, text: str) -> list[int]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(f"no valid Unicode at character {error.start}: {error.reason}") from error
        return self._bpe.encode(text, add_special_tokens=False).ids


def _bpe(checkpoint: Checkpoint, words: list[str]) -> Bpe:
    _check_known("vocabulary kind", checkpoint.value("tokenizer.ggml.model", str), ("gpt2",))
    _check_known("pre-tokeniser", checkpoint.value("tokenizer.ggml.pre", str, "default"), _PRE_TOKENIZERS)
    merges = [_pair(str(each)) for each in checkpoint.value("tokenizer.ggml.merges", list)]
    try:
        bpe = Bpe(models.BPE(vocab={word: at for at, word in enumerate(words)}, merges=merges))
    except Exception as error:  # the library has no kind of its own for a merge of unknown words
        raise ArtifactError(
            f"{checkpoint.path}: words and merges do not fit ({error}): fetch it again"
        ) from error
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    kinds = checkpoint.value("tokenizer.ggml.token_type", list, [])
    bpe.add_special_tokens(_added(words, kinds, _CONTROL, special=True))
    bpe.add_tokens(_added(words, kinds, _USER_DEFINED, special=False))
    return bpe


def _check_known(what: str, name: str, known: tuple[str, ...]) -> None:
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


def _template(checkpoint: Checkpoint) -> jinja2.Template | None:
    source = checkpoint.value("tokenizer.chat_template", str, "")
    # The template comes with the weights, from anywhere: it must not reach out of its sandbox.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refuse
    try:
        return environment.from_string(source) if source else None
    except jinja2.TemplateError as error:
        raise ArtifactError(f"{checkpoint.path}: the chat template is no template: {error}") from error


def _refuse(message: str) -> NoReturn:
    """What templates call for messages that they cannot take."""
    raise jinja2.TemplateError(message)
