"""Prompt templates: text with `{column}` fields, and nothing more.

A field is the bare name of a column. Attributes, items, conversions and formats are refused, so that a
template can reach the values of its row only.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from treadle.errors import ManifestError
from treadle.manifest import Manifest

_PLAIN = re.compile(r"[^.\[\]{}!:\s](?:[^.\[\]{}!:]*[^.\[\]{}!:\s])?")


@dataclass(frozen=True)
class Template:
    """Pieces of text, each followed by the value of a column, or by nothing (None)."""

    parts: tuple[tuple[str, str | None], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the template names, each once, sorted."""
        return tuple(sorted({column for _, column in self.parts if column is not None}))

    def fill(self, row: Mapping[str, object]) -> str:
        """The text for one row: strings as they are, other values as JSON."""
        return "".join(text if column is None else text + _text(row[column]) for text, column in self.parts)


def read_template(manifest: Manifest, field: str, text: str) -> Template:
    """The template `text`, which stands at `field` in the manifest. Doubled braces mean braces.

    Raises:
        ManifestError: unbalanced braces, or a field that is not the plain name of a column.
    """
    try:
        parts = tuple(_parts(text))
    except ValueError as error:
        raise ManifestError(
            [manifest.problem(field, "text with plain {column} fields", str(error))]
        ) from error
    return Template(parts)


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    for literal, column, form, conversion in string.Formatter().parse(text):
        extra = conversion or form
        if column is not None and (extra or not _PLAIN.fullmatch(column)):
            raise ValueError(f"the field {column!r}" + (f" with {extra!r}" if extra else ""))
        yield literal, column


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
