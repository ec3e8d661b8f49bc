"""The environment of the peers, apart from treadle's, which they could break.

python -m bench.dag.peers --install     make it, or bring it up to date
python -m bench.dag.peers               say what is in it
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.dag.launch import python_of
from bench.places import PEERS, ROOT

REQUIREMENTS = ROOT / "bench" / "requirements-peers.txt"


def main() -> None:
    if "--install" in sys.argv[1:]:
        install()
    python = python_of(is_peer=True)
    if not python.exists():
        sys.exit(f"no environment of peers at {PEERS}: python -m bench.dag.peers --install")
    subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "list"], check=True)


def install() -> None:
    """All in one call, so that they are resolved together."""
    python = str(PEERS / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        (PEERS / ".gitignore").write_text("*\n")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    uv = shutil.which("uv")
    install = [uv, "pip", "install", "--quiet", "--python", python] if uv else pip
    subprocess.run([*install, "--requirement", REQUIREMENTS], check=True)


if __name__ == "__main__":
    main()
