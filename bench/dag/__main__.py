"""What a step costs, side by side. All times are taken in processes of their own.

python -m bench.dag                            everything: treadle, the floor, the peers, the measures
python -m bench.dag --markdown                 the same, and write the tables into docs/benchmarks.md
python -m bench.dag --only treadle floor       contenders by the beginnings of their names; no measures
python -m bench.dag --measures growth latency  measures by name; no contenders
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.dag.compare import Score, compare
from bench.dag.contenders import CONTENDERS
from bench.dag.graphs import shapes
from bench.dag.launch import ask
from bench.dag.measures import MEASURES
from bench.dag.picture import draw
from bench.dag.tables import measure_table, settings_table, shape_table
from bench.page import Section
from bench.places import PAGE
from bench.table import Table, on_terminal

SECTION = Section("dag", "Results")


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the worker is ended too
    began, load = time.monotonic(), os.getloadavg()[0]
    scores = [] if options.only is None and options.measures is not None else _compare(options)
    rows = _measure(options) if options.measures is not None or options.only is None else {}
    tables = [shape_table(name, len(needs), scores) for name, needs in shapes().items() if scores]
    tables += [measure_table(MEASURES[name], *found) for name, found in rows.items()]
    tables += [settings_table(scores)] if scores else []
    on_terminal(tables)
    if options.json:
        options.json.write_text(json.dumps(_raw(scores, rows), indent=1))
    if options.markdown:
        SECTION.into_page([_drawn(each, rows) for each in tables], load)
    print(f"{time.monotonic() - began:.0f} s in all")


def _options() -> Any:
    parser = argparse.ArgumentParser("python -m bench.dag", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="repetitions of each contender (default 5)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contenders whose names begin so")
    parser.add_argument("--measures", nargs="*", metavar="NAME", help="measures by name")
    parser.add_argument(
        "--full", action="store_true", help="1,000,000 steps, and all graphs whole; takes long"
    )
    parser.add_argument("--limit", type=float, default=40, help="seconds for one process (default 40)")
    parser.add_argument(
        "--peer-seconds", type=float, default=12, help="a peer is repeated within (default 12)"
    )
    parser.add_argument("--markdown", action="store_true", help="write the tables into docs/benchmarks.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the single times into a file")
    options = parser.parse_args()
    if options.markdown and (options.only is not None or options.measures is not None):
        parser.error("--markdown: the page has everything, so not with --only or --measures")
    return options


def _compare(options: Any) -> list[Score]:
    chosen = [
        each for each in CONTENDERS if options.only is None or each.name.startswith(tuple(options.only))
    ]
    limit = options.limit * (10 if options.full else 1)
    seconds = options.peer_seconds * (10 if options.full else 1)
    return compare(chosen, options.runs, full=options.full, limit=limit, peer_seconds=seconds, tell=_tell)


def _measure(options: Any) -> dict[str, tuple[list[Any], str | None]]:
    found = {}
    for name in options.measures or MEASURES:
        _tell(f"measure: {name}")
        limit = MEASURES[name].seconds * (10 if options.full else 1)
        with tempfile.TemporaryDirectory(prefix="bench-dag-", ignore_cleanup_errors=True) as folder:
            words = ["measure", name, folder, *(["--full"] if options.full else [])]
            answers = ask(words, Path(folder), limit, is_peer=False)
        error = next((line["error"] for line in answers.lines if "error" in line), answers.problem)
        found[name] = ([line["row"] for line in answers.lines if "row" in line], error)
    return found


def _drawn(table: Table, rows: dict[str, tuple[list[Any], str | None]]) -> Table:
    """The table of growth with its picture, any other as it is."""
    picture = draw(rows["growth"][0]) if table.title == "growth" else None
    return replace(table, picture=str(picture.relative_to(PAGE.parent))) if picture else table


def _raw(scores: list[Score], rows: dict[str, tuple[list[Any], str | None]]) -> dict[str, Any]:
    times = {
        score.contender.name: {f"{shape}, {state}": each for (shape, state), each in score.times.items()}
        for score in scores
    }
    return {"milliseconds a step": times, "measures": {name: each for name, (each, _) in rows.items()}}


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
