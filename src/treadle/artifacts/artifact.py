"""The output folder of a step, as a value that can be handed on."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.artifacts.prefix import join


@dataclass(frozen=True)
class Artifact:
    """A folder that a step filled, as a path or URL; `artifact / "name"` is the path of a file in it.

    A frozen dataclass that inherits from it, with further fields of plain data, is a typed artifact.
    """

    path: str

    def __truediv__(self, name: str) -> str:
        return join(self.path, name)

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path
