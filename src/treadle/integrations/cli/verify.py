"""`treadle verify`: compare what is in a store with what its records say."""

from __future__ import annotations

from treadle.artifacts import Store
from treadle.artifacts.verify import Finding
from treadle.artifacts.verify import verify as look
from treadle.errors import ArtifactError
from treadle.integrations.cli.console import command, counted, say, table
from treadle.integrations.cli.lookup import StoreOption, find_step, opened


def verify(*steps: str, store: StoreOption = None) -> None:
    """Look whether all files and records are whole: sizes, checksums, values.

    Parameters
    ----------
    steps
        Only these steps: ids, names, how ids begin, or places.
    """
    place = opened(store)
    places = [find_step(place, step, built=True).place for step in steps] or None
    findings = list(look(place, places))
    if not findings:
        told = counted(len(places), "step") if places is not None else f"all that is in {place.prefix}"
        say(f"{told}: whole")
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
    error.add_note("a run itself sees missing files and other sizes, and builds those steps anew")
    error.add_note(f"to have one built anew whatever it is: {command('forget', broken[0], store=named)}")
    return error
