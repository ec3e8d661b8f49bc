"""Chats to text by the template that comes with a model, a Jinja program, with what transformers gives it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2.compiler import CodeGenerator
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Expr, Impossible, Node, TemplateData
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from treadle.engine.requests import Message
from treadle.errors import ArgumentError, ArtifactError

# Several times the longest there is; compiling goes on for minutes with a megabyte.
_LONGEST = 2**17


class _Generation(Extension):
    """`{% generation %}` marks what the assistant says, for training; here it is only what it encloses."""

    tags = {"generation"}  # noqa: RUF012 - as the base class has it

    def parse(self, parser: Parser) -> list[Node]:
        """The enclosed statements."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _NothingAhead(CodeGenerator):
    """Works nothing out before a chat is there: `{{ 10 ** 10 ** 9 }}` must not be what loading waits for."""

    def _output_child_to_const(self, node: Expr, frame: Any, finalize: Any) -> str:
        if not isinstance(node, TemplateData):
            raise Impossible
        return super()._output_child_to_const(node, frame, finalize)


class ChatTemplate:
    """A template, read once.

    Args:
        source: the program.
        specials: texts by names such as `eos_token`, which templates use.
        path: where it comes from, for the message.

    Raises:
        ArtifactError: it is no template, or a longer one than there is.
    """

    def __init__(self, source: str, specials: Mapping[str, str], path: Path) -> None:
        self._specials = dict(specials)
        if len(source) > _LONGEST:
            raise ArtifactError(
                f"{path}: a chat template of {len(source):,} characters, at most {_LONGEST:,} are known"
            )
        try:
            self._template = _environment().from_string(source)
        except Exception as error:  # nested too deep, it fails in any of the compilers that it goes through
            raise ArtifactError(f"{path}: the chat template is no template: {error}") from error

    def render(self, messages: Sequence[Message]) -> str:
        """The chat as the model was trained on it, up to where the assistant's answer begins.

        Raises:
            ArgumentError: the template refuses these messages.
        """
        turns = [{"role": each.role, "content": each.content} for each in messages]
        # Templates ask whether `tools` is none, which is not the same as not being defined.
        given = {**self._specials, "tools": None, "documents": None}
        try:
            return self._template.render(messages=turns, add_generation_prompt=True, **given)
        except Exception as error:  # a template is a program, and fails as programs do
            raise ArgumentError(f"the chat template refuses these messages: {error}") from error


def _environment() -> ImmutableSandboxedEnvironment:
    # A template comes with the weights, from anywhere: it must not reach out of its sandbox. It is given no
    # clock either, so that the same chat is the same text tomorrow.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[loopcontrols, _Generation]
    )
    environment.code_generator_class = _NothingAhead
    environment.globals["raise_exception"] = _refuse
    environment.filters["tojson"] = _as_json
    return environment


def _refuse(message: str) -> NoReturn:
    """What templates call for messages that they cannot take."""
    raise jinja2.TemplateError(message)


def _as_json(value: Any, indent: int | None = None) -> str:
    """Plain JSON; Jinja's own is made for web pages, and escapes what stands there for markup."""
    return json.dumps(value, ensure_ascii=False, indent=indent)
