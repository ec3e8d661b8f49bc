"""One part, in this process: its rows as JSON, a line each."""

from __future__ import annotations

import json
import sys

from bench.fray.parts import PARTS


def main() -> None:
    for row in PARTS[sys.argv[1]].rows():
        print(json.dumps({"row": row}), flush=True)


if __name__ == "__main__":
    main()
