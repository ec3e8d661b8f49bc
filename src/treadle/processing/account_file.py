"""The closing account of a run as a file beside its outputs."""

from __future__ import annotations

import json
from typing import Any

from treadle.domain.result import Counters
from treadle.errors import RunError
from treadle.processing.account import Account, UnitCount, named_counts
from treadle.processing.started import StartedRun
from treadle.storage import write_atomically


def write_account(run: StartedRun, account: Account, total: Counters) -> None:
    """Write what became of the rows of each unit and of all to the file of the plan.

    Raises:
        RunError: it cannot be written; the outputs are there all the same.
    """
    content = {
        "step_id": run.ctx.step_id,
        "total": named_counts(total),
        "units": [_unit(each) for each in account.units],
    }
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    try:
        write_atomically(run.plan.account, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        to_do = "into another place, or do without it" if run.plan.checkpoint is None else "to end this one"
        raise RunError(
            f"step {run.ctx.step_id}: its outputs are complete, but the account {run.plan.account} cannot be "
            f"written: {error}; make room there and run again {to_do}"
        ) from error


def _unit(each: UnitCount) -> dict[str, Any]:
    return {
        "unit": each.unit.id,
        "source": each.unit.source,
        "part": None if each.unit.part is None else list(each.unit.part),
        **named_counts(each.counters),
        "done_before": each.resumed,
    }
