"""The output folder of a step, as a value that can be handed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Artifact:
    """A folder that a step filled; `artifact / "name"` is the path of a file in it."""

    path: str

    def __truediv__(self, name: str) -> str:
        return str(PurePath(self.path, name))

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path
