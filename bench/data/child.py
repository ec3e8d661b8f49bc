"""One contender, in this process: CASE NAME DOCUMENTS FOLDER; the output goes into FOLDER/out."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from bench.data.contender import contender
from bench.data.corpus import corpus


def main() -> None:
    case, name, documents, folder = sys.argv[1:]
    chosen = contender(case, name)
    tool = importlib.import_module(f"bench.data.tools.{chosen.module}")
    tool.run(case, corpus(int(documents)), Path(folder) / "out", **chosen.options)


if __name__ == "__main__":
    main()
