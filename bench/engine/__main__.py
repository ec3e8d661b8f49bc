"""What generating costs, side by side with other engines: same weights, same prompts, two threads.

python -m bench.engine                            everything, one round: about half an hour
python -m bench.engine --markdown                 the same, and write the tables into docs/benchmarks.md
python -m bench.engine --only many one            some of the parts; `--help` lists them
python -m bench.engine --names treadle 'vLLM c'   those whose names begin like this
python -m bench.engine --kept --markdown          run nothing: write the tables of what earlier runs found

Each run keeps what it found in a folder, in the place of what an earlier one found of the same; so a long run
can be done in pieces.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.engine.contender import FIRST
from bench.engine.contenders import CONTENDERS, contender, contenders
from bench.engine.job import PARTS, Job, jobs
from bench.engine.kept import Kept, Piece, pieces
from bench.engine.launch import launch
from bench.engine.measure_tables import accuracy_table, products_table, runner_table
from bench.engine.tables import Score, case_table, loading_table, settings_table
from bench.engine.weights import CACHE
from bench.engine.workload import CASES, MANY
from bench.page import Section, versions_of
from bench.places import ROOT
from bench.table import Table, on_terminal

PEERS = Path(os.environ.get("BENCH_ENGINE_PEERS", ROOT / ".venv-peers-engine"))
SECTION = Section("engine", "Generating")


def main() -> None:
    options = _options()
    began = time.monotonic()
    kept = Kept(CACHE / ("small" if options.small else "kept"))
    if not options.kept:
        _run(jobs(options.only, options.names, options.rounds, small=options.small), kept, options)
    chosen = jobs(PARTS if options.markdown else options.only, options.names, 1, small=options.small)
    found = [piece for job in chosen for piece in kept.get(job)]
    versions = versions_of(
        sorted({each.package for each in CONTENDERS if not each.is_peer}),
        {each.package for each in CONTENDERS if each.is_peer},
        options.peers,
    )
    tables = _tables(found, chosen, versions)
    on_terminal(tables)
    if options.markdown:
        _write(tables, found, versions)
    print(f"{time.monotonic() - began:.0f} s in all")


def _run(chosen: Sequence[Job], kept: Kept, options: Any) -> None:
    for at, job in enumerate(chosen, start=1):
        began = time.monotonic()
        said = launch(job, options.peers, options.limit, options.profile)
        for piece in pieces(job, said):
            kept.put(piece)
        told = (
            f"{time.monotonic() - began:4.0f} s  {at:2} of {len(chosen)}  {job.name}: {', '.join(job.parts)}"
        )
        print(f"{told}  {said.problem or ''}", file=sys.stderr, flush=True)


def _tables(found: Sequence[Piece], chosen: Sequence[Job], versions: dict[str, str]) -> list[Table]:
    """Those of which something is known."""
    by_part: dict[str, list[Piece]] = {}
    for piece in found:
        by_part.setdefault(piece.part, []).append(piece)
    scores = {case: [Score(contender(each.name), each) for each in by_part.get(case, ())] for case in CASES}
    everything = [score for case in CASES for score in scores[case]]
    asked = {(part, job.name) for job in chosen for part in job.parts}
    tables = [
        case_table(case, listed, _missing(case, listed, asked)) for case, listed in scores.items() if listed
    ]
    if everything:
        first = {piece.name: piece for piece in by_part.get(FIRST, ())}
        tables.append(loading_table(everything, first))
    for part, table in (("runner", runner_table), ("accuracy", accuracy_table)):
        if part in by_part:
            tables.append(table(by_part[part]))
    if "products" in by_part:
        tables.append(products_table(by_part["products"], scores[MANY]))
    if everything:
        there = {score.contender.name for score in everything}
        tables.append(settings_table([each for each in CONTENDERS if each.name in there], versions))
    return tables


def _missing(case: str, scores: Sequence[Score], asked: set[tuple[str, str]]) -> list[str]:
    there = {each.contender.name for each in scores}
    return [each.name for each in contenders(case) if (case, each.name) in asked and each.name not in there]


def _write(tables: Sequence[Table], found: Sequence[Piece], versions: dict[str, str]) -> None:
    """The page says of all pieces together when they were taken, and how much others disturbed them."""
    others = max(piece.others for piece in found)
    rounds = {len(piece.lines) for piece in found if piece.part in CASES and piece.lines}
    days = sorted({piece.day for piece in found})
    SECTION.into_page(
        tables,
        f"processes of others kept {others:.2f} cores busy at most, in the mean over the run of one engine",
        rounds=min(rounds, default=None),
        versions=versions,
        taken=" to ".join(dict.fromkeys((days[0], days[-1]))),
    )


def _options() -> Any:
    parser = argparse.ArgumentParser(
        "python -m bench.engine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1, help="rounds of each case (default 1)")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--names", nargs="+", default=("",), metavar="NAME", help="beginnings of names")
    parser.add_argument("--kept", action="store_true", help="run nothing, show what was found before")
    parser.add_argument("--small", action="store_true", help="a few tokens, to see whether all of it runs")
    parser.add_argument("--profile", type=Path, help="a folder for what cProfile finds; slows things down")
    parser.add_argument("--peers", type=Path, default=PEERS, help="their environment")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one process (default 900)")
    parser.add_argument("--markdown", action="store_true", help="write the tables into docs/benchmarks.md")
    options = parser.parse_args()
    if options.markdown and (options.small or options.profile or options.names != ("",)):
        parser.error("--markdown: the page has all that is kept, so not with --small, --profile or --names")
    return options


if __name__ == "__main__":
    main()
