"""Gathering everything that is wrong before complaining, so that one run shows all of it."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.errors import ManifestError, Problem
from treadle.manifest.places import Items, Leaf, Node, Place, Section, Trail, trail_text
from treadle.manifest.scalars import write_word
from treadle.manifest.spelling import Spelling

_SHOWN = 80


class Problems:
    """The problems met so far.

    `incomplete` is set when a file of the manifest could not be read: from then on nothing is called missing
    or unknown that may stand in that file. `spelling` is how the manifest writes the fields of the language.
    """

    def __init__(self, spelling: Spelling | None = None) -> None:
        self.incomplete = False
        self.spelling = spelling or Spelling()
        self._found: list[Problem] = []

    def add(self, place: Place, trail: Trail, expected: str, found: str, nearest: str | None = None) -> None:
        """Note one problem; nothing is raised yet."""
        self._found.append(problem_at(place, self.spelling.old(trail), expected, found, nearest))

    def add_absent(
        self, place: Place, trail: Trail, expected: str, found: str, nearest: str | None = None
    ) -> None:
        """Note that something is not there, unless it may stand in a file that could not be read."""
        if not self.incomplete:
            self.add(place, trail, expected, found, nearest)

    def unreadable(
        self, place: Place, trail: Trail, expected: str, found: str, nearest: str | None = None
    ) -> None:
        """Note that a whole file is lost."""
        self.add(place, trail, expected, found, nearest)
        self.incomplete = True

    def raise_any(self) -> None:
        """Raise ManifestError with all problems by place, the manifest's before those of its includes."""
        if self._found:
            # A fragment that is included twice has each of its problems twice, under two chains.
            once = {_without_chain(each): each for each in reversed(self._found)}
            raise ManifestError(sorted(once.values(), key=_place_order))


def problem_at(place: Place, trail: Trail, expected: str, found: str, nearest: str | None = None) -> Problem:
    """A `Problem` at a place of the tree."""
    return Problem(
        place.file, place.line, place.column, trail_text(trail), expected, found, nearest, place.chain
    )


def describe(node: Node) -> str:
    """What was found, in a few words."""
    match node:
        case Leaf(value):
            return brief(value)
        case Items():
            return "a list"
        case Section():
            return "a mapping"


def brief(value: object) -> str:
    """The value as a manifest spells it, text in quotes, cut when it is long."""
    text = write_word(value) if value is None or isinstance(value, (bool, int, float)) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def listing(names: Sequence[object]) -> str:
    """`one of a, b`, or `a` alone."""
    known = ", ".join(map(str, names))
    return known if len(names) == 1 else f"one of {known}"


def _without_chain(problem: Problem) -> tuple[object, ...]:
    return problem.file, problem.line, problem.column, problem.field, problem.expected, problem.found


def _place_order(problem: Problem) -> tuple[object, ...]:
    return len(problem.include_chain) > 0, problem.file, problem.line, problem.column, problem.field
