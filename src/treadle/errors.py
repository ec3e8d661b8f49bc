"""Every exception that treadle raises, in one tree.

    TreadleError                    exit code 1: the work failed
    ├── UsageError                  exit code 2: what was asked for is wrong, nothing has run
    │   ├── GraphError              also a ValueError: cycle, unknown or self dependency, duplicate
    │   │   └── FingerprintMismatchError    the recipe of a step is not the one that was expected
    │   ├── DriftError              done steps whose recipe or code has changed, where that is refused
    │   ├── UnknownNameError        also a KeyError: the name is not among the known ones
    │   ├── ArgumentError           also a ValueError: an argument or a setting out of range
    │   │   └── MissingColumnError  rows lack a column that is needed
    │   ├── ManifestError           every problem of a manifest, each with its place
    │   ├── IdentityError           also a TypeError: a config that has no canonical form
    │   ├── NotSendableError        also a TypeError: what cannot be sent to another process
    │   └── MissingExtraError       also an ImportError: an optional package, with its install line
    ├── StepError                   a step could not be carried out
    │   ├── StoppedError            it was asked to stop, and did
    │   ├── StepTimeoutError        also a TimeoutError: it took longer than it may
    │   ├── WorkerLostError         the place where it ran was lost; no fault of the step
    │   ├── LeaseLostError          another owner took over; what this one made is not committed
    │   ├── PoisonedUnitError       a unit of work that kills every worker it is given to
    │   ├── RemoteError             what a job raised in another process, in words: it could not be sent
    │   ├── ResultTooLargeError     what a job returned is more than may be sent
    │   ├── DependencyRebuiltError  what it read was built anew meanwhile; tried again
    │   └── StepsFailedError        also an ExceptionGroup: the failures of a whole run
    ├── RunError                    a manifest run could not be carried out
    │   ├── BadRowError             a row that cannot be used, with its source and line
    │   └── AccountError            rows in are not rows out + filtered + rejected
    ├── ArtifactError               a record or an artifact that is corrupt, missing or of a newer format
    │   └── LedgerError             the ledger of a store that cannot be read or written
    ├── DatabaseError               also a ConnectionError: a database that cannot be reached, or refused
    ├── ClusterError                also a ConnectionError: a cluster that cannot be reached, or was lost
    └── EngineError                 also a RuntimeError: a forward pass or a resource broke its contract

A message says what, where, expected, got, and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self


class TreadleError(Exception):
    """Root of the tree; `exit_code` is what the command line returns for it."""

    exit_code = 1


class UsageError(TreadleError):
    """What was asked for is wrong; raised before any effect."""

    exit_code = 2


class GraphError(UsageError, ValueError):
    """A graph that cannot be put in order."""


class FingerprintMismatchError(GraphError):
    """The recipe of a step is not the one whose fingerprint was expected."""

    def __init__(self, step_id: str, expected: str, found: str) -> None:
        self.step_id = step_id
        self.expected = expected
        self.found = found
        super().__init__(
            f"step {step_id}: expected the fingerprint {expected}, got {found}: an argument, a captured "
            "variable, the function or a dependency is another one; undo the change, or, if it is meant, "
            f"set expected_fingerprint={found[: max(12, len(expected))]!r}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.step_id, self.expected, self.found)


class DriftError(UsageError):
    """Done steps whose recipe or code has changed since they were built; the run refuses to serve them."""

    def __init__(self, drifted: Sequence[str]) -> None:
        self.drifted = tuple(drifted)
        listed = "\n".join(f"  {each}" for each in self.drifted)
        super().__init__(
            f"{len(self.drifted)} done steps have changed since they were built:\n{listed}\n"
            "to serve them: on_drift='warn'; to build them again: on_drift='rebuild'"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.drifted,)


class ArgumentError(UsageError, ValueError):
    """An argument or a setting that is out of range or of the wrong kind."""


class MissingColumnError(ArgumentError):
    """Rows lack a column that a transform needs; `known` are those that they have."""

    def __init__(self, column: str, known: Iterable[str]) -> None:
        self.column = column
        self.known = tuple(known)
        super().__init__(f"expected a column {column!r}, found the columns {', '.join(self.known) or 'none'}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.column, self.known)


class UnknownNameError(UsageError, KeyError):
    """A name that nobody registered; the message lists the known ones and the nearest."""

    def __init__(self, kind: str, name: object, known: Iterable[object]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(str(each) for each in known))
        super().__init__(f"unknown {kind} {str(name)!r}{_hint(str(name), self.known)}")

    # KeyError prints the repr of its argument, which would put the sentence in quotes.
    __str__ = Exception.__str__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.name, self.known)


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name most like `name`, or None when nothing comes close."""
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.6)), None)


def _hint(name: str, known: Sequence[str]) -> str:
    guess = nearest(name, known)
    listing = f"known: {', '.join(known)}" if known else "none is known"
    return f"; did you mean {guess!r}? ({listing})" if guess else f" ({listing})"


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a manifest. `line` and `column` count from 1; 0 means unknown."""

    file: str
    line: int
    column: int
    field: str
    expected: str
    found: str
    nearest: str | None = None
    include_chain: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        field = f" {self.field}:" if self.field else ""
        guess = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        chain = f" (included by {' <- '.join(self.include_chain)})" if self.include_chain else ""
        return f"{place}:{field} expected {self.expected}, found {self.found}{guess}{chain}"


class ManifestError(UsageError):
    """All the problems of a manifest at once, in the order of their places."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        title = "1 problem" if count == 1 else f"{count} problems"
        super().__init__("\n".join([f"{title} in the manifest:", *(f"  {each}" for each in self.problems)]))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class IdentityError(UsageError, TypeError):
    """A config value that has no canonical form, so no identity; names the path to it."""


class NotSendableError(UsageError, TypeError):
    """Something that cannot be pickled, so it cannot be sent to another process.

    `what` is the whole, `path` leads from there to the object at fault; empty when it is unknown. `advice` is
    what to do.
    """

    def __init__(
        self,
        what: str,
        path: str,
        reason: str,
        advice: str = "build it inside the function, or run on threads",
    ) -> None:
        self.what = what
        self.path = path
        self.reason = reason
        self.advice = advice
        where = f": {path}" if path else ""
        super().__init__(f"{what} cannot be sent to another process{where}: {reason}; {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.path, self.reason, self.advice)


class MissingExtraError(UsageError, ImportError):
    """An optional package that is not installed; the message is the line to paste."""

    def __init__(self, package: str, extra: str, what_for: str) -> None:
        self.package = package
        self.extra = extra
        self.what_for = what_for
        line = f"pip install 'treadle[{extra}]' (in a clone: pip install '.[{extra}]')"
        super().__init__(f"{what_for} needs the package {package!r}; install it with: {line}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.package, self.extra, self.what_for)


class StepError(TreadleError):
    """A step could not be carried out."""


class StoppedError(StepError):
    """The work was asked to stop, by Ctrl-C or by whoever owns it, and did."""


class StepTimeoutError(StepError, TimeoutError):
    """A step took longer than its timeout."""


class WorkerLostError(StepError):
    """The place where a step ran was lost: a killed process, a machine that is gone. No fault of the step."""


class PoisonedUnitError(StepError):
    """A unit of work that killed `kills` workers; it is not tried again.

    `unit` is its place, from 0; `how` is how the last of the workers ended, in words.
    """

    def __init__(self, unit: int, shown: str, kills: int, how: str = "") -> None:
        self.unit = unit
        self.shown = shown
        self.kills = kills
        self.how = how
        last = f", the last time so: {how}" if how else ""
        super().__init__(
            f"unit {unit} ({shown}) was given to {kills} workers, and each of them died at it{last}; "
            "the other units are not at fault: leave it out, or see in the notes what was printed last"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.unit, self.shown, self.kills, self.how)


class RemoteError(StepError):
    """What a job raised in another process and what could not be sent as it was: its type and message."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(f"{kind}: {message}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.message)


class ResultTooLargeError(StepError):
    """What a job returned takes `found` bytes, and `allowed` may be sent."""

    def __init__(self, found: int, allowed: int) -> None:
        self.found = found
        self.allowed = allowed
        super().__init__(
            f"the result takes {found:,} bytes, and at most {allowed:,} are sent: "
            "write it to a file and return the path"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.found, self.allowed)


class LeaseLostError(StepError):
    """Another owner took the step over, so what this one made is not committed and nobody sees it."""


class DependencyRebuiltError(StepError):
    """What a step read was built anew meanwhile, so what it made is not committed. No fault of the step.

    `builds` are the present builds of its dependencies (step id -> build), as far as they stand.
    """

    def __init__(self, step_id: str, changed: Sequence[str], builds: Mapping[str, str]) -> None:
        self.step_id = step_id
        self.changed = tuple(changed)
        self.builds = dict(builds)
        super().__init__(
            f"step {step_id}: {', '.join(self.changed)} was built anew, or forgotten, while it was read; "
            "run again"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.step_id, self.changed, self.builds)


class StepsFailedError(StepError, ExceptionGroup[Exception]):
    """Some steps of a run failed. `results` holds what every other step gave.

    The message names each failed step with its cause and each skipped one with its culprits.
    """

    def __new__(cls, message: str, errors: Sequence[Exception], _results: Mapping[str, object]) -> Self:
        """An exception group takes its message and its errors here, before `__init__`."""
        return super().__new__(cls, message, list(errors))

    def __init__(self, message: str, errors: Sequence[Exception], results: Mapping[str, object]) -> None:
        super().__init__(message, list(errors))
        self.results = results

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.exceptions, self.results)

    def derive(self, excs: Sequence[Exception]) -> StepsFailedError:  # type: ignore[override]
        """Split and subgroup keep the results; see `ExceptionGroup.derive`."""
        return type(self)(self.message, excs, self.results)

    def __str__(self) -> str:
        return self.message


class RunError(TreadleError):
    """A manifest run could not be carried out."""


class BadRowError(RunError):
    """A row that cannot be used.

    `line` counts from 1, and is 0 when the whole file cannot be used. `offset` is the byte where the row
    begins, None where that means nothing. `kind` is a short stable name for the reason.
    """

    def __init__(
        self, source: str, line: int, reason: str, offset: int | None = None, kind: str = "rejected"
    ) -> None:
        self.source = source
        self.line = line
        self.reason = reason
        self.offset = offset
        self.kind = kind
        place = f"{source}:{line}" if line else source
        at = "" if offset is None else f"at byte {offset}, "
        super().__init__(f"{place}: {reason} ({at}{kind})")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.source, self.line, self.reason, self.offset, self.kind)


class AccountError(RunError):
    """Rows were lost or invented: rows in are not rows out + filtered + rejected."""


class ArtifactError(TreadleError):
    """A record or an artifact that is corrupt, missing or written by a newer treadle."""


class LedgerError(ArtifactError):
    """The ledger of a store cannot be read or written: a full disk, no permission, damage, a lost store."""


class ClusterError(TreadleError, ConnectionError):
    """A cluster that cannot be reached, or whose connection was lost."""


class DatabaseError(TreadleError, ConnectionError):
    """A database cannot be reached, or refused a statement. `url` has no password."""

    def __init__(self, url: str, statement: str, reason: str) -> None:
        self.url = url
        self.statement = statement
        self.reason = reason
        super().__init__(f"{url}: {statement}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.url, self.statement, self.reason)


class EngineError(TreadleError, RuntimeError):
    """A forward pass or a resource broke its contract."""
