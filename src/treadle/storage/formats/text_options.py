"""The options of the text format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pydantic


@dataclass(frozen=True)
class TextOptions:
    """`column`: the name of the column when reading. `whole`: a file is one row, when reading."""

    column: Annotated[str, pydantic.StringConstraints(min_length=1)] = "text"
    whole: bool = False
