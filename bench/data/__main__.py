"""What rows cost, side by side with other tools. Each run of each tool is a process of its own.

python -m bench.data                       everything, about half an hour
python -m bench.data --markdown            the same, and write the tables into docs/benchmarks.md
python -m bench.data --rows 5000           with fewer documents
python -m bench.data --only keys skewed    some of the cases: rows, batches, keys, skewed
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from bench.data.compare import Bench, Score
from bench.data.contender import BATCHES, KEYS, ROWS, SKEWED, contender, contenders
from bench.data.corpus import SHARDS
from bench.data.tables import TITLES, case_table, gain_table, memory_table, settings_table
from bench.page import Section, versions_of
from bench.places import PEERS
from bench.table import Table, on_terminal

SECTION = Section("data", "Rows")
CASES = (ROWS, BATCHES, KEYS, SKEWED)
_MEMORY = ((ROWS, "treadle"), (ROWS, "treadle, 2 processes"), (BATCHES, "treadle"), (KEYS, "treadle"))


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that outputs are removed
    began, load = time.monotonic(), os.getloadavg()[0]
    bench = Bench(options.peers, options.work, options.limit, _tell)
    found = {case: bench.compare(contenders(case), options.rows, options.rounds) for case in options.only}
    tables = _tables(bench, found, options.rows)
    theirs = {each.package for case in CASES for each in contenders(case) if each.package and each.is_peer}
    versions = versions_of(("treadle",), theirs, options.peers)
    scores = [score for each in found.values() for score in each]
    tables.append(settings_table(scores, versions))
    on_terminal(tables)
    if options.markdown:
        SECTION.into_page(tables, load, rounds=options.rounds, versions=versions)
    print(f"{time.monotonic() - began:.0f} s in all")


def _options() -> Any:
    parser = argparse.ArgumentParser(
        "python -m bench.data", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000, help="documents (default 200000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--only", nargs="+", choices=CASES, default=CASES, metavar="CASE", help="cases by name"
    )
    parser.add_argument("--peers", type=Path, default=PEERS, help="their environment (default .venv-peers)")
    parser.add_argument("--work", type=Path, help="a folder for outputs, by default that for temporary files")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one process (default 900)")
    parser.add_argument("--markdown", action="store_true", help="write the tables into docs/benchmarks.md")
    options = parser.parse_args()
    if options.markdown and options.only is not CASES:
        parser.error("--markdown: the page has everything, so not with --only")
    if options.rows < 4 * SHARDS or options.rounds < 1:
        parser.error(f"--rows must be at least {4 * SHARDS}, and --rounds at least 1")
    options.rows -= options.rows % (4 * SHARDS)
    return options


def _tables(bench: Bench, found: dict[str, list[Score]], documents: int) -> list[Table]:
    tables = [case_table(case, scores, documents) for case, scores in found.items()]
    if ROWS in found:
        tables.append(gain_table(found[ROWS]))
    peaks = {}
    for case, name in _MEMORY:
        if case in found:
            many = next(each for each in found[case] if each.contender.name == name)
            few = bench.peak(contender(case, name), documents // 4)
            label = f"{TITLES[case]}: {name}"
            peaks[label] = (few, many.peak if many.costs else None)
    return [*tables, memory_table(peaks, documents // 4, documents)]


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
