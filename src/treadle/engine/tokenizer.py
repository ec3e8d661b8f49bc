"""Text to token ids and back, and chats to text, by the vocabulary of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.engine.chat_template import ChatTemplate
from treadle.engine.requests import Message
from treadle.engine.weights import Checkpoint, Vocabulary
from treadle.engine.weights.library_calls import call
from treadle.errors import ArgumentError, ArtifactError


class Tokenizer:
    """Speaks a vocabulary.

    Attributes:
        size: ids run from 0 to here, exclusive.
        ends: the tokens that end a text.

    Raises:
        ArtifactError: the chat template is none.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.size = vocabulary.size
        self.ends = vocabulary.ends
        self._pieces = vocabulary.pieces
        self._template = _template(vocabulary)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text, with what the vocabulary puts around each; special tokens in it are recognised.

        Raises:
            ArgumentError: the text holds half a surrogate pair, as broken JSON does; or the tokenizer of the
                model fails on it.
        """
        return self._ids(text, whole=True)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Ids of a chat, up to where the assistant's answer begins.

        Raises:
            ArgumentError: as for `encode`, or as for `render`.
        """
        return self._ids(self.render(messages), whole=False)

    def render(self, messages: Sequence[Message]) -> str:
        """A chat as the text that the model was trained on.

        Raises:
            ArgumentError: the model has no chat template, or it refuses these messages.
        """
        if self._template is None:
            raise ArgumentError(
                "this model has no chat template: give a plain prompt "
                "(--plain on the command line, chat: false in a manifest)"
            )
        return self._template.render(messages)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens left out.

        Raises:
            ArgumentError: the tokenizer of the model is damaged, and fails on these.
        """
        try:
            return call(self._pieces.decode, list(ids), skip_special_tokens=True)
        except ValueError as error:
            raise ArgumentError(f"the model's tokenizer has no text for these tokens: {error}") from error

    def _ids(self, text: str, *, whole: bool) -> list[int]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(f"no valid Unicode at character {error.start}: {error.reason}") from error
        try:
            return call(self._pieces.encode, text, add_special_tokens=whole).ids
        except ValueError as error:
            raise ArgumentError(f"the model's tokenizer cannot take this text: {error}") from error


def load_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer that belongs to the weights of a checkpoint.

    Raises:
        UnknownNameError: a kind of vocabulary that is not known.
        ArtifactError: it is missing or damaged, has more tokens than the model, or no chat template but
            something in its place.
    """
    vocabulary, known = checkpoint.vocabulary(), checkpoint.value("vocab_size", int)
    if vocabulary.size > known:
        raise ArtifactError(
            f"{checkpoint.path}: the tokenizer has {vocabulary.size} tokens and the model knows {known}: "
            "they do not belong together"
        )
    return Tokenizer(vocabulary)


def _template(vocabulary: Vocabulary) -> ChatTemplate | None:
    if not vocabulary.template:
        return None
    return ChatTemplate(vocabulary.template, vocabulary.specials, vocabulary.path)
