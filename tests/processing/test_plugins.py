"""Plugins: found, loaded once, and named when they are broken."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from treadle.errors import ArgumentError
from treadle.processing import plugins

PATTERN = """
from treadle import ext

loads = []

def run(job):
    return ext.Counters(rows_in=1, filtered=1)

def setup():
    loads.append("setup")

loads.append("import")
ext.register_pattern_runner("from_plugin", run)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path; nothing loaded in it is remembered afterwards."""
    before = set(sys.modules)
    monkeypatch.setattr(plugins, "_loaded", set())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("plugin_"):
            del sys.modules[name]


def install(site: Path, entry: str) -> None:
    """What pip leaves of a package with an entry point."""
    folder = site / "some_plugin-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[treadle.plugins]\nsome = {entry}\n")


def test_a_module_of_the_variable_adds_a_run_type(
    site: Path, workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: named in the environment, loaded by the run, chosen by the manifest."""
    (site / "plugin_env.py").write_text(PATTERN.replace("from_plugin", "from_env"))
    monkeypatch.setenv(plugins.VARIABLE, " plugin_env ,")
    assert workshop.run("run: {type: from_env}").counters.filtered == 1
    assert sys.modules["plugin_env"].loads == ["import"]


@pytest.mark.parametrize(
    ("entry", "loads"), [("plugin_point", ["import"]), ("plugin_point:setup", ["import", "setup"])]
)
def test_an_entry_point_is_loaded_once(site: Path, entry: str, loads: list[str]) -> None:
    """A module registers on import; a function is called, and not again by the next run."""
    (site / "plugin_point.py").write_text(PATTERN.replace("from_plugin", f"from_{len(loads)}"))
    install(site, entry)
    plugins.load_plugins()
    plugins.load_plugins()
    assert sys.modules["plugin_point"].loads == loads


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_package_at_all", "ModuleNotFoundError: No module named 'no_such_package_at_all'"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        (
            "from treadle.ext import register_pattern_runner\nregister_pattern_runner('partition', print)",
            "the run type 'partition' is already registered",
        ),
    ],
)
def test_a_broken_plugin_is_named(site: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str) -> None:
    """The user must know which of the installed packages to mend, and why."""
    (site / "plugin_broken.py").write_text(code)
    monkeypatch.setenv(plugins.VARIABLE, "plugin_broken")
    with pytest.raises(ArgumentError, match=r"the plugin plugin_broken \(from TREADLE_PLUGINS\)") as caught:
        plugins.load_plugins()
    assert said in str(caught.value)
    (site / "plugin_broken.py").write_text("")
    sys.modules.pop("plugin_broken", None)


def test_a_missing_plugin_is_named(site: Path, monkeypatch: pytest.MonkeyPatch, workshop: Any) -> None:
    monkeypatch.setenv(plugins.VARIABLE, "plugin_nowhere")
    with pytest.raises(ArgumentError, match="plugin_nowhere"):
        workshop.run("run: {type: partition}")
    assert workshop.sink.events == [], "nothing has run"


def test_a_broken_entry_point_is_named_with_its_group(site: Path) -> None:
    install(site, "plugin_absent:setup")
    with pytest.raises(ArgumentError, match=r"plugin_absent:setup \(entry point 'some' of treadle.plugins\)"):
        plugins.load_plugins()
