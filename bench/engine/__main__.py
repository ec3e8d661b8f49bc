"""What generating costs, side by side with other engines: same weights, same prompts, two threads.

python -m bench.engine                      everything, about half an hour
python -m bench.engine --markdown           the same, and write the tables into docs/benchmarks.md
python -m bench.engine --only many          some of the cases: many, one, prefix
python -m bench.engine --names treadle      contenders by the beginnings of their names
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench.engine.compare import Bench, Score
from bench.engine.contender import CONTENDERS, contenders
from bench.engine.tables import case_table, settings_table
from bench.engine.workload import CASES
from bench.page import Section, versions_of
from bench.places import ROOT
from bench.table import on_terminal

PEERS = Path(os.environ.get("BENCH_ENGINE_PEERS", ROOT / ".venv-peers-engine"))
SECTION = Section("engine", "Generating")


def main() -> None:
    options = _options()
    began, load = time.monotonic(), os.getloadavg()[0]
    bench = Bench(options.peers, options.limit, lambda text: print(text, file=sys.stderr, flush=True))
    found = {case: _compare(bench, case, options) for case in options.only}
    ours, theirs = ({each.package for each in CONTENDERS if each.is_peer is peer} for peer in (False, True))
    versions = versions_of(sorted(ours), theirs, options.peers)
    scores: list[Score] = [each for listed in found.values() for each in listed]
    tables = [case_table(case, listed) for case, listed in found.items()]
    tables.append(settings_table(scores, versions))
    on_terminal(tables)
    if options.markdown:
        SECTION.into_page(tables, load, rounds=options.rounds, versions=versions)
    print(f"{time.monotonic() - began:.0f} s in all")


def _compare(bench: Bench, case: str, options: Any) -> list[Score]:
    chosen = [each for each in contenders(case) if each.name.startswith(tuple(options.names))]
    return bench.compare(case, chosen, options.rounds)


def _options() -> Any:
    parser = argparse.ArgumentParser(
        "python -m bench.engine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--only", nargs="+", choices=CASES, default=CASES, metavar="CASE", help="cases by name"
    )
    parser.add_argument("--names", nargs="+", default=("",), metavar="NAME", help="beginnings of names")
    parser.add_argument("--peers", type=Path, default=PEERS, help="their environment")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one process (default 900)")
    parser.add_argument("--markdown", action="store_true", help="write the tables into docs/benchmarks.md")
    options = parser.parse_args()
    if options.markdown and (options.only is not CASES or options.names != ("",)):
        parser.error("--markdown: the page has everything, so not with --only or --names")
    return options


if __name__ == "__main__":
    main()
