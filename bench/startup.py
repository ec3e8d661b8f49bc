"""How long a user waits for `import treadle` and for `treadle --help`. Medians of nine runs.

python bench/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import treadle": [sys.executable, "-c", "import treadle"],
    "treadle --help": [str(Path(sys.executable).with_name("treadle")), "--help"],
}


def median_seconds(command: list[str], runs: int = 9) -> float:
    """The median wall time of a whole process."""
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def main() -> None:
    for name, command in COMMANDS.items():
        print(f"{name:16} {median_seconds(command):.3f} s")


if __name__ == "__main__":
    main()
