"""`treadle verify`: compare what is in a store with what its records say."""

from __future__ import annotations

from treadle.artifacts import Store
from treadle.artifacts.verify import Finding
from treadle.artifacts.verify import verify as look
from treadle.errors import ArtifactError
from treadle.integrations.cli.console import command, counted, say, table
from treadle.integrations.cli.known import called_apart, id_and_name
from treadle.integrations.cli.lookup import StoreOption, find_steps, opened

_SHOWN = 20


def verify(*steps: str, store: StoreOption = None) -> None:
    """Look whether all files and records are whole: sizes, checksums, values.

    Parameters
    ----------
    steps
        Only these steps: ids, names (all steps of one), how ids begin, or places.
    """
    place = opened(store)
    asked = {each.place: each for step in steps for each in find_steps(place, step, built=True)}
    findings = list(look(place, list(asked) or None))
    if not findings:
        for told in called_apart(place, list(asked.values()))[:_SHOWN]:
            say(f"  {told}")
        checked = counted(len(asked), "step") if asked else f"all that is in {place.prefix}"
        say(f"{checked}: whole")
        return
    table(("step", "problem", "path", "detail"), map(_row, findings))
    raise _broken(place, findings, store)


def _row(finding: Finding) -> tuple[str, ...]:
    return (finding.step_id or finding.place, finding.problem.value, finding.path, finding.detail)


def _broken(store: Store, findings: list[Finding], named: str | None) -> ArtifactError:
    broken = sorted({each.step_id or each.place for each in findings})
    error = ArtifactError(
        f"{counted(len(findings), 'problem')} with {counted(len(broken), 'step')} of {store.prefix}"
    )
    again = command("run", "TARGET", "--select", _name(findings[0]), store=named)
    error.add_note(f"missing files and other sizes, a run sees by itself: {again}")
    error.add_note(f"whatever it is, first: {command('forget', broken[0], store=named)}")
    return error


def _name(finding: Finding) -> str:
    step = finding.step_id
    return step.rpartition("@" if "@" in step else "-")[0] or id_and_name(finding.place)[1]
