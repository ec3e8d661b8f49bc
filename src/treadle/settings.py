"""The settings of the project around the current folder.

The nearest folder upwards wins that has a `treadle.toml`, or a `pyproject.toml` with a
`[tool.treadle]` table in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treadle.errors import ArgumentError, UnknownNameError

KEYS = (
    "answer_seconds",
    "cluster",
    "clusters",
    "kernel_cache",
    "lease_seconds",
    "outage_seconds",
    "prefix",
)
"""What may stand in a settings table: a key that nobody reads would be a mistake that nobody sees."""


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
        UnknownNameError: it has a key that means nothing; lists the known.
    """
    folder = (start or Path.cwd()).absolute()
    for each in (folder, *folder.parents):
        if (own := each / "treadle.toml").is_file():
            return Settings(own, _checked(str(own), _parsed(own)))
        if (project := each / "pyproject.toml").is_file():
            found = Settings(project, _parsed(project).get("tool", {}))
            if "treadle" in found.table:
                return Settings(project, _checked(f"{project}: tool.treadle", found.section("treadle")))
    return Settings(None, {})


def _checked(where: str, table: Mapping[str, object]) -> Mapping[str, object]:
    for key in table:
        if key not in KEYS:
            raise UnknownNameError(f"key of {where}", key, KEYS)
    return table


def _parsed(file: Path) -> dict[str, Any]:
    import tomllib  # here: most processes find no settings file

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ArgumentError(f"{file}: expected TOML: {error}") from error
