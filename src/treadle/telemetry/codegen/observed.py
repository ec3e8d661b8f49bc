"""What of a manifest decides how its runs are watched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ObservedRun:
    """The runs of one step. `interval` and `stalled_seconds` are in seconds."""

    step_id: str
    run_type: str
    mode: Literal["pull", "push", "textfile"] = "pull"
    interval: float = 5.0
    max_bad_fraction: float | None = None
    max_bad_rows: int | None = None
    checkpoint: bool = False
    stalled_seconds: int = 600

    def series(self, name: str, **labels: str) -> str:
        """The PromQL selector of a metric of these runs."""
        # The text of a JSON string is that of a PromQL string.
        wanted = {"step": self.step_id, **labels}
        chosen = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in wanted.items())
        return f"{name}{{{chosen}}}"
