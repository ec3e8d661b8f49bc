"""What there is to do: one process for each job, which tells of one or more parts of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.engine.contender import FIRST, Contender
from bench.engine.contenders import CONTENDERS
from bench.engine.measures import MEASURES
from bench.engine.workload import CASES

PARTS = (*CASES, FIRST, *MEASURES)


@dataclass(frozen=True)
class Job:
    """A module with its words; `parts` are those that its lines tell of.

    `anew`: it finds empty folders where it would keep what it compiles.
    """

    name: str
    parts: tuple[str, ...]
    module: str
    words: tuple[str, ...]
    is_peer: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    anew: bool = False


def jobs(parts: Sequence[str], names: Sequence[str], rounds: int, *, small: bool) -> list[Job]:
    """Those of the parts, of whose name one of `names` is the beginning."""
    found = [*_contending(parts, rounds, small), *_measuring(parts, small)]
    return [each for each in found if each.name.startswith(tuple(names))]


def _contending(parts: Sequence[str], rounds: int, small: bool) -> Iterator[Job]:
    """One process for all cases of a contender, since loading is dear."""
    for each in CONTENDERS:
        cases = tuple(case for case in CASES if case in parts and case in each.cases)
        if cases:
            yield _contender_job(each, cases, rounds, small)
        if FIRST in parts and FIRST in each.cases:
            yield _contender_job(each, (FIRST,), 1, small)


def _contender_job(contender: Contender, cases: tuple[str, ...], rounds: int, small: bool) -> Job:
    return Job(
        contender.name,
        cases,
        "bench.engine.child",
        (*_flag(small), contender.name, str(rounds), *cases),
        contender.is_peer,
        contender.environment,
        anew=cases == (FIRST,),
    )


def _measuring(parts: Sequence[str], small: bool) -> Iterator[Job]:
    for part, names in MEASURES.items():
        for name in names if part in parts else ():
            module = f"bench.engine.measures.{part}"
            yield Job(name, (part,), module, (*_flag(small), name))


def _flag(small: bool) -> tuple[str, ...]:
    return ("--small",) if small else ()
