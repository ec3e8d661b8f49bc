"""Who runs which step, with which params, and where its outputs go."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from treadle.errors import ArgumentError


@dataclass(frozen=True)
class RunContext:
    """What an integration tells a run; it does not change during the run.

    `run_id` sorts by the time of creation. `output_root` is a folder or any fsspec URL, and is what
    `${run.output}` stands for in a manifest. `params` overlay the defaults of the manifest. `integration`
    names what started the run, such as "cli", and `user` whom it was started for.
    """

    run_id: str
    step_id: str
    output_root: str
    user: str
    integration: str = "python"
    params: Mapping[str, object] = field(default_factory=dict)
    attempt: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("run_id", "step_id", "output_root"):
            if not getattr(self, name):
                raise ArgumentError(f"RunContext.{name} must not be empty")
        if "://" not in self.output_root:
            # `${run.output}` must mean the same wherever it is used, whatever folder the process changes to.
            object.__setattr__(self, "output_root", str(Path(self.output_root).absolute()))
        if self.attempt < 1:
            raise ArgumentError(f"RunContext.attempt counts from 1, got {self.attempt}")

    @classmethod
    def create(
        cls,
        step_id: str,
        output_root: str | os.PathLike[str],
        *,
        user: str | None = None,
        integration: str = "python",
        params: Mapping[str, object] | None = None,
        attempt: int = 1,
        labels: Mapping[str, str] | None = None,
        now: datetime | None = None,
    ) -> Self:
        """A context with a fresh run id, for the user of this process where none is named.

        Raises:
            ArgumentError: an empty step id or output root, or an attempt below 1.
        """
        return cls(
            run_id=new_run_id(now or datetime.now(UTC)),
            step_id=step_id,
            output_root=os.fspath(output_root),
            user=user if user is not None else _current_user(),
            integration=integration,
            params=dict(params or {}),
            attempt=attempt,
            labels=dict(labels or {}),
        )

    def with_params(self, overlay: Mapping[str, object] | None) -> Self:
        """A copy in which `overlay` wins over the params of this context."""
        return replace(self, params={**self.params, **(overlay or {})})


def new_run_id(now: datetime) -> str:
    """An id that sorts by time, and differs within a microsecond: `20261129T195702.123456-9f3a01bc`."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%S.%f}-{secrets.token_hex(4)}"


def _current_user() -> str:
    # Not getpass.getuser: it raises for a user id without an entry, which is ordinary in containers.
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid {os.getuid()}"


UNBOUND: Mapping[str, str] = {"run.id": "<run.id>", "run.output": "<run.output>"}
"""What `${run.id}` and `${run.output}` stand for when a manifest is checked outside a run."""
