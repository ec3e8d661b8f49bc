"""Where things are."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
PEERS = Path(os.environ.get("BENCH_PEERS", ROOT / ".venv-peers"))
