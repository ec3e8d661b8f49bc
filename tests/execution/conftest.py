"""Toy steps for the tests of the runner."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import open_store
from treadle.execution import StepRunner, StepSpec


class Toy:
    """Builds steps in one store and writes down which of them ran."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.ran: list[str] = []
        self.fails: set[str] = set()

    def step(
        self, name: str, *deps: StepSpec, body: Callable[[], Any] | None = None, **options: Any
    ) -> StepSpec:
        def fn(path: str) -> Any:
            self.ran.append(name)
            if name in self.fails:
                raise ValueError(f"{name} is broken")
            Path(path, "out.txt").write_text(name)
            return body() if body else name

        return StepSpec(name, fn, deps, output_path_prefix=str(self.store), **options)

    def ran_again(self, steps: list[StepSpec], **options: Any) -> list[str]:
        self.ran.clear()
        StepRunner().run(steps, **options)
        return sorted(self.ran)

    def is_done(self, step: StepSpec) -> bool:
        return open_store(str(self.store)).record(step.output_path) is not None

    def forget(self, step: StepSpec) -> None:
        open_store(str(self.store)).forget(step.output_path)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


@pytest.fixture(scope="session")
def new_toy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Toy]:
    """A fresh toy for each example of a property test, which shares its fixtures between examples."""
    return lambda: Toy(tmp_path_factory.mktemp("store"))
