"""From a request to a generation that can run, or to the completion that says why it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treadle.engine.generation import Generation
from treadle.engine.requests import Completion, GenerationRequest, Message
from treadle.engine.text import GrowingText
from treadle.engine.tokenizer import Tokenizer
from treadle.errors import ArgumentError


@dataclass(frozen=True)
class Intake:
    """Checks requests against what the model and its cache can hold, in tokens."""

    tokenizer: Tokenizer
    context: int
    pool: int

    def take(
        self, request: GenerationRequest, number: int, *, streamed: bool = False
    ) -> Generation | Completion:
        """The request, named by a number that no other has, or a completion with its error.

        Raises:
            ArgumentError: it is no request, so that no completion could say whose error it is.
        """
        if not isinstance(request, GenerationRequest):
            raise ArgumentError(f"the engine takes GenerationRequest records, got {request!r}")
        ids: list[int] = []
        try:
            ids = self._encode(request.prompt)
            limit = self._limit(ids, request.max_new_tokens)
            ends = self._ends(request)
        except ArgumentError as error:
            return Completion(request.id, "", (), len(ids), "error", str(error))
        text = GrowingText(self.tokenizer.decode, request.stop, after=ids)
        return Generation(
            rid=f"{number}:{request.id}",
            request=request,
            tokens=ids,
            prompt_tokens=len(ids),
            limit=limit,
            ends=ends,
            text=text,
            streamed=streamed,
        )

    def _ends(self, request: GenerationRequest) -> frozenset[int]:
        own = () if request.ignore_eos else self.tokenizer.ends
        return frozenset(own).union(self._known(each) for each in request.stop_tokens)

    def _encode(self, prompt: object) -> list[int]:
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt)
        if not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray):
            raise ArgumentError(f"a prompt is a text, messages or token ids, got a {type(prompt).__name__}")
        if prompt and isinstance(prompt[0], Message | Mapping):
            return self.tokenizer.encode_chat([self._message(each) for each in prompt])
        return [self._known(each) for each in prompt]

    def _message(self, turn: object) -> Message:
        if not isinstance(turn, Message):
            raise ArgumentError(f"a chat is made of messages: give Message records, got {turn!r} among them")
        return turn

    def _known(self, token: object) -> int:
        if type(token) is not int or not 0 <= token < self.tokenizer.size:
            raise ArgumentError(f"unknown token id {token!r}: ids run from 0 to {self.tokenizer.size - 1}")
        return token

    def _limit(self, ids: Sequence[int], new: int) -> int:
        """Tokens at most, prompt included: what was asked for, cut at the model's context."""
        if not ids:
            raise ArgumentError("the prompt is empty: there is nothing to go on from")
        if len(ids) >= self.context:
            raise ArgumentError(
                f"the prompt has {len(ids)} tokens, the model's context {self.context}, "
                "and one must be left for the answer: shorten the prompt"
            )
        limit = min(len(ids) + new, self.context)
        if limit - 1 > self.pool:
            raise ArgumentError(
                f"the prompt and its new tokens need room for {limit - 1} tokens, the cache has {self.pool}: "
                "shorten it, lower max_new_tokens, or load the engine with a larger cache_tokens"
            )
        return limit
