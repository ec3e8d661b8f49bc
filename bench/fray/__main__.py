"""What a job and a unit of `job_map` cost, side by side with others who run them.

Each part runs in a process of its own, and its contenders take turns. How many workers, units and runs there
are stands above each table. Without Ray the parts that need it are left out; joblib takes part when it is
installed.

python -m bench.fray                      everything, some minutes
python -m bench.fray --markdown           the same, and write the tables into docs/benchmarks.md
python -m bench.fray --only threads Ray   parts whose names hold one of these words
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

from bench.fray.parts import PARTS
from bench.page import Section
from bench.places import ROOT
from bench.table import Table, on_terminal

SECTION = Section("fray", "What a job and a unit cost")
LIMIT_S = 100.0

_LIMIT_HELP = f"end a part that takes longer than so many seconds; by default {LIMIT_S:g}"


def main() -> None:
    options = _options()
    began, load = time.monotonic(), os.getloadavg()[0]
    tables = []
    for name in PARTS:
        if options.only is None or any(word in name for word in options.only):
            print(f"{name} ...", file=sys.stderr, flush=True)
            tables.append(_table(name, options.limit))
    on_terminal(tables)
    if options.markdown:
        SECTION.into_page(tables, load)
    print(f"{time.monotonic() - began:.0f} s in all")


def _options() -> Any:
    parser = argparse.ArgumentParser(
        "python -m bench.fray",
        description=__doc__,
        epilog=f"parts: {', '.join(PARTS)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", metavar="WORD", help="parts whose names hold one of these words")
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="S", help=_LIMIT_HELP)
    parser.add_argument("--markdown", action="store_true", help="write the tables into docs/benchmarks.md")
    options = parser.parse_args()
    if options.markdown and options.only is not None:
        parser.error("--markdown: the page has everything, so not with --only")
    if options.only is not None and not any(word in name for word in options.only for name in PARTS):
        parser.error(f"--only: no part has one of these words; there are {', '.join(PARTS)}")
    return options


def _table(name: str, limit: float) -> Table:
    lines, problem = _lines(name, limit)
    told = [json.loads(line) for line in lines if line.startswith(('{"row"', '{"note"'))]
    rows = [each["row"] for each in told if "row" in each]
    notes = [each["note"] for each in told if "note" in each]
    if problem:
        notes.append(f"Ended early: {problem}")
    return Table.of(name, PARTS[name].about, rows, notes)


def _lines(name: str, limit: float) -> tuple[list[str], str | None]:
    """What the part has said, and why it ended early if it did."""
    own = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *([own] if own else [])])}
    words = [sys.executable, "-m", "bench.fray.run_part", name]
    part = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, errors = part.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        part.kill()
        out, _ = part.communicate()
        return out.splitlines(), f"more than {limit:g} s."
    last = errors.strip().splitlines()[-1:] or ["no message"]
    return out.splitlines(), f"exit code {part.returncode}: {last[0]}" if part.returncode else None


if __name__ == "__main__":
    main()
