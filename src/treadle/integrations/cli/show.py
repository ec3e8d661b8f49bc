"""`treadle show`: all that the record of a step says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from treadle.artifacts import FileEntry, Record, Store
from treadle.artifacts.drift import differences
from treadle.errors import ArtifactError
from treadle.integrations.cli.console import command, counted, say, size, took, when
from treadle.integrations.cli.known import Known, labels_in
from treadle.integrations.cli.lookup import StoreOption, find_steps, opened
from treadle.integrations.progress.state import called

_LINES = 20
_TEXT = 2_000
_WIDTH = 12


def show(step: str, /, *, store: StoreOption = None) -> None:
    """Show the record of a step: what it gave, from what, where and when.

    Parameters
    ----------
    step
        The step: its id, its name, how its id begins, or its place.
    """
    place = opened(store)
    several = find_steps(place, step, built=True)
    found = max(several, key=lambda each: each.time)
    if found.damage:
        raise ArtifactError(found.damage)
    output = place.output_path(found.place)
    record = place.record(output)
    if record is None:
        raise ArtifactError(f"{output}: its build was withdrawn a moment ago; look again")
    told = labels_in(place, several).get(found.place, "")
    for name, text in (("step", called(found.id, told)), *_parts(place, found, record)):
        say(f"{name:{_WIDTH}}{text}")
    if len(several) > 1:
        say(f"the latest of {len(several):,} steps of that name: {command('ls', found.name, store=store)}")
    say(f"next: {command('history', found.id, store=store)}, or {command('logs', found.id, store=store)}")


def _parts(store: Store, step: Known, record: Record) -> Iterator[tuple[str, str]]:
    head, body = record.head, record.body
    yield "build", f"{record.number} ({head.build[:12]})"
    yield "output", store.folder(store.output_path(step.place), head)
    yield "value", _cut(told(body.value))
    yield from _listed("recipe", [f"{each.path} = {each.new}" for each in differences(*_fields(body.config))])
    yield from _listed("needs", [f"{dep}, build {build[:12]}" for dep, build in head.deps.items()])
    whole = size(sum(each.bytes for each in head.files))
    yield from _listed("files", [_file(each) for each in head.files], f", {whole} in all")
    yield "when", f"{when(head.started)}, took {took(head.seconds)}"
    yield "run", f"{body.run} on {body.host}, {counted(body.attempts, 'attempt')}"
    yield "fingerprint", head.fingerprint
    yield "code", head.code_hash or "not known"
    yield "treadle", body.treadle
    if body.commit:
        yield "commit", body.commit + (f", with uncommitted changes {body.dirty[:12]}" if body.dirty else "")
    if body.lock:
        yield "lock file", f"sha256 {body.lock[:12]}"
    if step.at_work is not None:
        yield "since", f"at work on it again: {step.at_work.describe()}"
    elif step.attempt is not None and step.attempt.outcome not in ("done", "skipped"):
        yield "since", f"its last attempt, {when(step.attempt.started)}, {step.attempt.outcome}"


def _fields(config: Any) -> tuple[Any, Any]:
    """A form without any argument, and the form: so all its fields differ."""
    if not _is_dict(config):
        return None, config
    return {"dict": [[key, {"dict": []}] for key, each in config["dict"] if _is_dict(each)]}, config


def _is_dict(form: Any) -> bool:
    return isinstance(form, dict) and form.keys() == {"dict"}


def _listed(name: str, lines: Sequence[str], total: str = "") -> Iterator[tuple[str, str]]:
    """The first of the lines; `total` follows the number of the others."""
    for place, line in enumerate(lines[:_LINES]):
        yield ("" if place else name), _cut(line)
    if (more := len(lines) - _LINES) > 0:
        yield "", f"and {more:,} more{total}"


def _file(entry: FileEntry) -> str:
    return f"{entry.path}  {size(entry.bytes)}  {entry.checksum[:19]}"


def told(tree: Any) -> str:
    """The value that a record keeps, as text; no module is imported for it."""
    if isinstance(tree, list):
        return f"[{', '.join(map(told, tree))}]"
    if not isinstance(tree, dict) or len(tree) != 1:
        return repr(tree)
    [(tag, content)] = tree.items()
    match tag:
        case "here":
            return f"output/{content}" if content else "output"
        case "dict":
            return f"{{{', '.join(f'{key!r}: {told(each)}' for key, each in content.items())}}}"
        case "tuple":
            return f"({', '.join(map(told, content))}{',' * (len(content) == 1)})"
        case "dataclass":
            _, name, fields = content
            return f"{name}({', '.join(f'{key}={told(each)}' for key, each in fields.items())})"
        case "path":
            return f"Path({told(content)})"
    return f"{tag} {content}"


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}… ({len(text):,} characters)"
