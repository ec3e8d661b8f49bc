"""One repetition of a contender, or one measure, in a process of its own. Answers with lines of JSON.

python -m bench.dag.worker run NAME cold|warm FOLDER [--full]
python -m bench.dag.worker measure NAME FOLDER [--full]
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.contenders import BY_NAME
from bench.dag.graphs import RAN, Needs, chain, shapes


def main() -> None:
    answer_to = os.dup(1)
    os.dup2(2, 1)  # whatever a contender prints must not come between
    warnings.simplefilter("ignore")
    for answer in _answers(sys.argv[1:]):
        os.write(answer_to, (json.dumps(answer) + "\n").encode())
    os._exit(0)  # the results are out; what a contender does at its exit, some for seconds, is nobody's time


def _answers(words: list[str]) -> Iterator[dict[str, Any]]:
    full = "--full" in words
    if words[0] == "run":
        yield from compare(BY_NAME[words[1]], words[2], Path(words[3]), full)
    else:
        yield from measure(words[1], Path(words[2]), full)


def compare(contender: Contender, state: str, folder: Path, full: bool) -> Iterator[dict[str, Any]]:
    """The `version`, or why it is `missing`; then for each shape its `seconds`, or its `error`."""
    try:
        yield {"version": _version(contender)}
    except metadata.PackageNotFoundError as error:
        yield {"missing": f"{error} is not installed"}
        return
    with contender.service(folder):
        # So that what is imported late, and what is compiled first, is in nobody's time.
        _timed(contender, chain(3), folder / f"first-{state}")
        for shape, needs in shapes(small=contender.slow and not full).items():
            if shape in contender.cannot:
                yield {"shape": shape, "error": contender.cannot[shape]}
                continue
            store = folder / shape.replace(" ", "-").replace(",", "")
            yield {"shape": shape, "steps": len(needs), **_timed(contender, needs, store)}


def _version(contender: Contender) -> str:
    """Without an import: some read their settings then, and the service has yet to make them."""
    if contender.package is None:
        return sys.version.split()[0]
    return metadata.version(contender.package)


def _timed(contender: Contender, needs: Needs, store: Path) -> dict[str, Any]:
    RAN.clear()
    began = time.perf_counter()
    try:
        contender.run(needs, store)
    except BaseException as error:  # noqa: BLE001 - what a contender cannot do is a finding
        return {"error": describe(error)}
    return {"seconds": time.perf_counter() - began, "ran": len(RAN) if contender.counts else None}


def measure(name: str, folder: Path, full: bool) -> Iterator[dict[str, Any]]:
    """The rows of a measure, then its `error` if there is one."""
    from bench.dag.measures import MEASURES  # a peer's environment need not have what these import

    try:
        for row in MEASURES[name].rows(folder, full):
            yield {"row": dict(row)}
    except BaseException as error:  # noqa: BLE001 - told in the table
        yield {"error": describe(error)}


def describe(error: BaseException) -> str:
    """`Type: first line`."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:160]


if __name__ == "__main__":
    main()
