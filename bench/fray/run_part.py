"""One part, in this process: its rows, and why there are no more, as JSON, a line each."""

from __future__ import annotations

import json
import sys

from bench.fray.parts import PARTS
from treadle.errors import MissingExtraError


def main() -> None:
    try:
        for row in PARTS[sys.argv[1]].rows():
            _say(row=row)
    except MissingExtraError as missing:
        _say(note=f"Left out: {missing}")


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
