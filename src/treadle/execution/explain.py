"""Why a step will run, or be served: down to the field that differs and the file that is missing."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.artifacts import open_store
from treadle.artifacts.drift import FieldChange
from treadle.execution.drift import Drift, changed_fields, fields_since
from treadle.execution.freshness import Plan, Reason, Why
from treadle.execution.graph import StepGraph
from treadle.execution.step_spec import StepSpec


def explain(graph: StepGraph, plan: Plan, key: str) -> list[str]:
    """Sentences, the first of which says whether the step runs; a step that is not needed says so."""
    step = graph.steps[key]
    if key in plan.done:
        head = plan.done[key]
        served = f"{key} is served: build {head.build[:12]} of {head.started}, in {step.output_path}"
        return [served, *_drifted(step, plan.drifted.get(key))]
    if key not in plan.reasons:
        return [
            f"{key} is not there, and not needed: what needs it is done; to build it: --select {step.name}"
        ]
    reason = plan.reasons[key]
    return [f"{key} will run: {reason}", *_detail(graph, plan, key, reason)]


def _detail(graph: StepGraph, plan: Plan, key: str, reason: Reason) -> list[str]:
    step = graph.steps[key]
    match reason.why:
        case Why.NEVER_BUILT:
            return _against_latest(step)
        case Why.FILES_GONE:
            return _missing_files(step)
        case Why.RECIPE_CHANGED | Why.CODE_CHANGED:
            return _drifted(step, Drift(reason.why is Why.RECIPE_CHANGED, reason.why is Why.CODE_CHANGED))
        case Why.DEP_RUNS:
            return [f"  {line}" for line in explain(graph, plan, _first_cause(plan, reason.dep))]
        case Why.DEP_REBUILT:
            return [f"  {reason.dep} is build {plan.done[reason.dep].build[:12]} now"]
    return []


def _first_cause(plan: Plan, key: str) -> str:
    """Along what has to run, to the step that has to for a reason of its own."""
    seen = {key}
    while (reason := plan.reasons.get(key)) is not None and reason.why is Why.DEP_RUNS:
        if reason.dep in seen:
            break
        key = reason.dep
        seen.add(key)
    return key


def _drifted(step: StepSpec, drift: Drift | None) -> list[str]:
    if not drift:
        return []
    lines = ["  the code of its function has changed since"] if drift.code else []
    return [*lines, *_lines(changed_fields(step) if drift.recipe else ())]


def _against_latest(step: StepSpec) -> list[str]:
    """What differs from the latest build of a step of the same name."""
    store = open_store(str(step.output_path_prefix))
    named = (entry for entry in store.ledger.places() if entry.place.rpartition("/")[0] == step.name)
    heads = {entry.place: store.head(entry) for entry in named}
    latest = max(heads, key=lambda place: heads[place].started, default=None)
    if latest is None:
        return [f"  no step of the name {step.name} has ever been built in {store.prefix}"]
    record = store.record(store.output_path(latest))
    if record is None:
        return []
    title = f"  compared with the latest of that name, {record.head.step_id}:"
    return [title, *_lines(fields_since(record, step))]


def _lines(changes: Iterable[FieldChange]) -> list[str]:
    return [f"  {change}" for change in changes]


def _missing_files(step: StepSpec) -> list[str]:
    store = open_store(str(step.output_path_prefix))
    record = store.record(step.output_path)
    if record is None:
        return []
    folder = store.folder(step.output_path, record.head)
    lost = [each for each in record.head.files if not store.workplace.stand(folder, [each])]
    return [f"  {each.path}: expected {each.bytes:,} bytes in {folder}" for each in lost[:10]]
