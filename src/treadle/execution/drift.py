"""Drift: what has changed about a done step since it was built, down to the fields of its recipe.

The recipe of a step can drift under a fixed name and version, or a place given by hand; elsewhere another
recipe is another step. The code of its function can drift under any.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.artifacts import Record, RecordHead, code_hash, open_store
from treadle.artifacts.code_hash import comparable
from treadle.artifacts.drift import FieldChange, describe_changes, recipe_changes
from treadle.execution.step_spec import StepSpec


class Drift(NamedTuple):
    """What has changed about a step since it was built."""

    recipe: bool
    code: bool

    def __bool__(self) -> bool:
        return self.recipe or self.code


def drift_of(step: StepSpec, head: RecordHead) -> Drift:
    """What has changed about a step since that build."""
    present = code_hash(step.fn) if step.fn is not None else ""
    code = comparable(present, head.code_hash) and present != head.code_hash
    return Drift(recipe=head.fingerprint != step.hash_id, code=code)


def describe_drift(step: StepSpec, drift: Drift) -> str:
    """Drift in words, each changed field with its old and new value. Reads the record of the step."""
    recipe = describe_changes(changed_fields(step)) if drift.recipe else ""
    told = (f"its recipe has changed ({recipe})" if drift.recipe else "", _CODE if drift.code else "")
    return " and ".join(each for each in told if each)


def changed_fields(step: StepSpec) -> tuple[FieldChange, ...]:
    """In what the recipe of the step differs from that of its standing build."""
    record = open_store(str(step.output_path_prefix)).record(step.output_path)
    return () if record is None else fields_since(record, step)


def fields_since(record: Record, step: StepSpec) -> tuple[FieldChange, ...]:
    """In what the recipe of the step differs from a recorded one."""
    return recipe_changes(record.body.config, step.config, tuple(record.head.deps), step.dep_ids)


_CODE = "the code of its function has changed"
