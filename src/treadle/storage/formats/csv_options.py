"""The options of the csv format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _character(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text in "\0\r\n":
        raise PydanticCustomError("character", "one ASCII character that is no line break")
    return text


def _character_or_none(text: str) -> str:
    return text and _character(text)


@dataclass(frozen=True)
class CsvOptions:
    """`delimiter`: one ASCII character; None is a tab for files named .tsv, a comma for all others.

    `quote`: one ASCII character, "" when quotes mean nothing. `header`: the first record has the names of the
    columns; without it they are c0, c1, ...
    """

    delimiter: Annotated[str, AfterValidator(_character)] | None = None
    quote: Annotated[str, AfterValidator(_character_or_none)] = '"'
    header: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError when the delimiter and the quote are one character."""
        if self.quote == (self.delimiter or ","):
            raise PydanticCustomError("same", "a quote other than the delimiter")
