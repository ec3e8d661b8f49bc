"""What a job and a unit of `job_map` cost, side by side. Each part runs in a process of its own.

python -m bench.fray                      everything
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
from dataclasses import replace
from typing import Any

from rich.markup import escape

from bench.dag.launch import ROOT
from bench.dag.show import on_terminal
from bench.dag.tables import Table
from bench.fray.parts import PARTS
from bench.fray.show import into_page

LIMIT_S = 100


def main() -> None:
    options = _options()
    began = time.monotonic()
    tables = []
    for name in PARTS:
        if options.only is None or any(word in name for word in options.only):
            print(f"{name} ...", file=sys.stderr, flush=True)
            tables.append(_table(name))
    on_terminal([replace(each, about=escape(each.about)) for each in tables])
    if options.markdown:
        into_page(tables)
    print(f"{time.monotonic() - began:.0f} s in all")


def _options() -> Any:
    parser = argparse.ArgumentParser("python -m bench.fray", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="WORD", help="parts whose names hold one of these words")
    parser.add_argument("--markdown", action="store_true", help="write the tables into docs/benchmarks.md")
    options = parser.parse_args()
    if options.markdown and options.only is not None:
        parser.error("--markdown: the page has everything, so not with --only")
    return options


def _table(name: str) -> Table:
    lines, problem = _rows(name)
    rows = [json.loads(line)["row"] for line in lines if line.startswith('{"row"')]
    head = list(dict.fromkeys(key for row in rows for key in row))
    text = [tuple(_cell(row.get(key)) for key in head) for row in rows]
    return Table(name, PARTS[name].about, head, text, (f"Ended early: {problem}",) if problem else ())


def _rows(name: str) -> tuple[list[str], str | None]:
    own = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *([own] if own else [])])}
    words = [sys.executable, "-m", "bench.fray.run_part", name]
    part = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, errors = part.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        part.kill()
        out, _ = part.communicate()
        return out.splitlines(), f"more than {LIMIT_S} s."
    last = errors.strip().splitlines()[-1:] or ["no message"]
    return out.splitlines(), f"exit code {part.returncode}: {last[0]}" if part.returncode else None


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float) else str(value)


if __name__ == "__main__":
    main()
