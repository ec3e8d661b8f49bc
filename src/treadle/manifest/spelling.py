"""How a field of the present language was written in an older version, for the messages about an old file."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.manifest.places import Trail

PRESENT = 4


@dataclass(frozen=True)
class Spelling:
    """The version a manifest was written in, and the old trail of each field that was renamed since.

    `version` is 4, 3, or 2 for all that came before.
    """

    version: int = PRESENT
    renamed: tuple[tuple[Trail, Trail], ...] = ()

    def old(self, trail: Trail) -> Trail:
        """`trail` as the file has it: of the renamed beginnings that fit, the longest counts."""
        fitting = [pair for pair in self.renamed if trail[: len(pair[0])] == pair[0]]
        if not fitting:
            return trail
        new, old = max(fitting, key=lambda pair: len(pair[0]))
        return (*old, *trail[len(new) :])
