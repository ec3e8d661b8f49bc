"""A workshop for tests of runs: write rows and a manifest, run it, look at what came out."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.processing.generating import Asking
from treadle.processing import RunContext, RunOutcome, run_from_manifest
from treadle.storage import Dataset, read_table
from treadle.telemetry import RecordingSink


class Workshop:
    """A folder with inputs, a manifest and an output root `out`; `sink` has the events of the last run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.out = root / "out"
        self.sink = RecordingSink()

    def rows(self, name: str, rows: Iterable[object]) -> Path:
        """Write a jsonl file; a string stands for the line itself, so that it can be a bad one."""
        path = self.root / "in" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def manifest(self, body: str) -> Path:
        path = self.root / "manifest.yaml"
        path.write_text(f"drtml_version: 4\nstep_id: step\n{textwrap.dedent(body)}")
        return path

    def run(
        self, body: str, given: Mapping[str, object] | None = None, *, out: Path | None = None, **told: Any
    ) -> RunOutcome:
        self.sink = RecordingSink()
        ctx = RunContext.create("step", out or self.out, **told)
        overlay = {"in": str(self.root / "in"), **(given or {})}
        body = f"params: {{in: {{type: path}}}}\n{textwrap.dedent(body)}" if "params:" not in body else body
        return run_from_manifest(self.manifest(body), ctx, overlay, sink=self.sink)

    def read(self, output: str, backend: str = "parquet", *, out: Path | None = None) -> list[dict[str, Any]]:
        return read_table(Dataset(backend, str((out or self.out) / output))).to_pylist()

    def quarantined(self) -> list[dict[str, Any]]:
        path = self.out / "step.quarantine.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def visible(self) -> list[str]:
        """Every file below the output root, staging included."""
        return sorted(str(path.relative_to(self.out)) for path in self.out.rglob("*") if path.is_file())

    def events(self) -> list[str]:
        """The names of the events in order: no phases, and none whose number is a matter of time."""
        left_out = {"ResourcesSampled", "PhaseStarted", "PhaseEnded", "RowsAnswered"}
        return [name for each in self.sink.events if (name := type(each).__name__) not in left_out]


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model of random weights."""
    from tests.engine.folders import write_language_model  # here: it loads torch, and few tests need that

    return write_language_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def asking(tmp_path: Path, tiny_model: Path) -> Asking:
    return Asking(tmp_path, tiny_model)


@pytest.fixture
def new_workshop(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Workshop]:
    """A fresh workshop for each example of a property test, which shares its fixtures between examples."""
    return lambda: Workshop(tmp_path_factory.mktemp("workshop"))
