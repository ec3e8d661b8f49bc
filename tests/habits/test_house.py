"""The house rules that a tool can check, so that nobody has to remember them."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import treadle

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "treadle"
ROOMS = sorted(each.name for each in SOURCE.iterdir() if each.is_dir() and (each / "__init__.py").exists())
PACKAGES = [
    name for _, name, is_package in pkgutil.walk_packages([str(SOURCE)], prefix="treadle.") if is_package
]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_exports_what_exists_and_says_what_it_is_for(name: str) -> None:
    """A room's `__init__` is its face; that it is sorted, ruff sees to."""
    room = importlib.import_module(name)
    assert all(hasattr(room, each) for each in getattr(room, "__all__", ()))
    assert room.__doc__, f"{name} says in one line what it is for"


def test_the_package_itself_exports_what_it_says() -> None:
    assert all(hasattr(treadle, each) for each in treadle.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_its_line_in_the_map(room: str) -> None:
    """`docs/structure.md` is how a newcomer finds the way; a room that is not on it is not found."""
    assert f"`{room}/`" in (ROOT / "docs" / "structure.md").read_text()


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_is_short_or_says_why(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= 400 or "longer than" in "\n".join(lines[:20])


@pytest.mark.parametrize(("name", "limit"), [("README.md", 150), ("CONTRIBUTING.md", 120)])
def test_a_page_is_short_enough_to_be_read(name: str, limit: int) -> None:
    assert len((ROOT / name).read_text().splitlines()) < limit


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_that_a_page_names_exists(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / name).read_text(), flags=re.MULTILINE))
    assert named
    assert named <= targets


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_importing_treadle_loads_nothing_heavy() -> None:
    """The seconds are measured in `bench/startup.py`; what would cost them is held off here."""
    heavy = {"torch", "pyarrow", "numpy", "pydantic", "fsspec", "yaml", "sklearn", "ray", "rich"}
    code = "import sys, treadle; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not heavy & set(loaded.split())


def test_the_licence_of_the_corpus_ships_with_it() -> None:
    corpora = SOURCE / "experiment" / "corpora"
    assert "public domain" in (corpora / "NOTICE.md").read_text()
    assert all(path.stat().st_size < 5_000_000 for path in corpora.iterdir())
