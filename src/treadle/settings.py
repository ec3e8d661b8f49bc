"""The settings of the project around the current folder.

The nearest folder upwards wins that has a `treadle.toml`, or a `pyproject.toml` with a
`[tool.treadle]` table in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treadle.errors import ArgumentError


@dataclass(frozen=True)
class Settings:
    """One settings table and the file it stands in; no file, no entries."""

    file: Path | None
    table: Mapping[str, object]

    def section(self, name: str) -> Mapping[str, object]:
        """The table `name`, empty when it is not there.

        Raises:
            ArgumentError: it is there and is no table.
        """
        value = self.table.get(name, {})
        if not isinstance(value, Mapping):
            raise ArgumentError(f"{self.file}: {name}: expected a table, got {value!r}")
        return value


def find_settings(start: Path | None = None) -> Settings:
    """The settings that hold at `start`, by default the current folder.

    Raises:
        ArgumentError: the file is no TOML.
    """
    folder = (start or Path.cwd()).absolute()
    for each in (folder, *folder.parents):
        if (own := each / "treadle.toml").is_file():
            return Settings(own, _parsed(own))
        if (project := each / "pyproject.toml").is_file():
            found = Settings(project, _parsed(project).get("tool", {}))
            if "treadle" in found.table:
                return Settings(project, found.section("treadle"))
    return Settings(None, {})


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ArgumentError(f"{file}: expected TOML: {error}") from error
