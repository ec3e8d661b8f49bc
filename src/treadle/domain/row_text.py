"""Transforms of text columns: normalise, replace, count words, keep by length. Null stays null."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from treadle.domain.row_step import Computed, RowFunction, RowStep, Values, column_step, texts
from treadle.domain.text import Normalization
from treadle.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class NormalizeRows:
    """Brings text columns into one form.

    In this order: `strip_control` removes control characters but tab and line ends, `form` is the Unicode
    form, `lowercase`, and `whitespace` makes every run of white space one space, none at the ends.
    """

    columns: Sequence[str] = ("text",)
    form: Normalization | None = "NFC"
    lowercase: bool = False
    whitespace: bool = False
    strip_control: bool = False

    def __post_init__(self) -> None:
        check_names("columns", self.columns)
        if self.form is not None and self.form not in get_args(Normalization):
            raise ArgumentError(
                f"form: must be one of {', '.join(get_args(Normalization))}, got {self.form!r}"
            )

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return column_step(self.columns, self._compute, "string")

    def _compute(self, values: Mapping[str, Values]) -> Computed:
        made = {
            name: [self._normal(each) if isinstance(each, str) else None for each in column]
            for name, column in values.items()
        }
        return Computed(made, faults=texts(values))

    def _normal(self, text: str) -> str:
        if self.strip_control:
            text = _CONTROL.sub("", text)
        text = self._in_form(text)
        if self.lowercase:
            text = self._in_form(text.lower())  # lowering can leave a sequence that is no longer normal
        return " ".join(text.split()) if self.whitespace else text

    def _in_form(self, text: str) -> str:
        return text if self.form is None else unicodedata.normalize(self.form, text)


@dataclass(frozen=True)
class ReplaceRows:
    """Replaces what a pattern finds in a text column.

    The pattern is one of RE2, whose time is linear in the text; `by` may name groups as `\\1`.
    """

    column: str
    pattern: str
    by: str = ""

    def __post_init__(self) -> None:
        check_pattern(self.pattern)
        import pyarrow as pa  # here: only patterns need it
        from pyarrow import compute as pc

        try:
            pc.replace_substring_regex(pa.array([""]), pattern=self.pattern, replacement=self.by)
        except pa.ArrowInvalid as error:
            raise ArgumentError(f"by: {error}") from error

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return column_step([self.column], self._compute, "string")

    def _compute(self, values: Mapping[str, Values]) -> Computed:
        from pyarrow import compute as pc  # here: as above

        replaced = pc.replace_substring_regex(
            as_texts(values[self.column]), pattern=self.pattern, replacement=self.by
        )
        return Computed({self.column: replaced.to_pylist()}, faults=texts(values))


@dataclass(frozen=True)
class CountWords:
    """Puts the number of words of a text column into another; words are what white space separates."""

    column: str = "text"
    into: str = "words"

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return column_step([self.column], self._compute, "int64")

    def _compute(self, values: Mapping[str, Values]) -> Computed:
        counts = [len(each.split()) if isinstance(each, str) else None for each in values[self.column]]
        return Computed({self.into: counts}, faults=texts(values))


@dataclass(frozen=True)
class LengthFilter:
    """Keeps rows whose text has `min` to `max` words or characters; a null is not kept."""

    column: str = "text"
    unit: Literal["words", "characters"] = "words"
    min: int = 0
    max: int | None = None

    def __post_init__(self) -> None:
        if self.unit not in ("words", "characters"):
            raise ArgumentError(f"unit: must be words or characters, got {self.unit!r}")
        if self.min < 0:
            raise ArgumentError(f"min: must be at least 0, got {self.min}")
        if self.max is not None and self.max < self.min:
            raise ArgumentError(f"max: must be at least min, which is {self.min}, got {self.max}")

    def step(self, function: RowFunction | None = None) -> RowStep:  # noqa: ARG002 - all steps are made alike
        """The step; it needs no function."""
        return column_step([self.column], self._compute)

    def _compute(self, values: Mapping[str, Values]) -> Computed:
        kept = [isinstance(each, str) and self._fits(each) for each in values[self.column]]
        return Computed(kept=kept, faults=texts(values))

    def _fits(self, text: str) -> bool:
        length = len(text.split()) if self.unit == "words" else len(text)
        return self.min <= length and (self.max is None or length <= self.max)


def check_pattern(pattern: str, option: str = "pattern") -> None:
    """Raises ArgumentError when RE2 does not take the pattern."""
    import pyarrow as pa  # here: only patterns need it
    from pyarrow import compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as error:
        raise ArgumentError(f"{option}: {error}") from error


def check_names(option: str, names: Sequence[str]) -> None:
    """Raises ArgumentError unless `names` is a list of distinct names, at least one."""
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise ArgumentError(f"{option}: must be a list of distinct columns, at least one, got {names!r}")


def as_texts(values: Values) -> pa.StringArray:
    """The strings of a column; all else is null."""
    import pyarrow as pa  # here: see `row_step`

    return pa.array([each if isinstance(each, str) else None for each in values], pa.string())
