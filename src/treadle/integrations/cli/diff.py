"""`treadle diff`: what differs between two builds, or between two steps."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.artifacts import Record, Store
from treadle.artifacts.drift import recipe_changes
from treadle.errors import ArgumentError
from treadle.integrations.cli.console import command, counted, say, size, took, when
from treadle.integrations.cli.lookup import StoreOption, find_step, find_steps, opened
from treadle.integrations.cli.show import told

_PLAIN = ("run", "host", "treadle", "commit", "dirty", "lock")
_SHOWN = 50
_WIDTH = 60


def diff(first: str, second: str | None = None, /, *, store: StoreOption = None) -> None:
    """Say what differs between two steps, or between two builds of one, field by field.

    Parameters
    ----------
    first
        A step: its id, its name, how its id begins, or its place; STEP#2 is its build number 2.
    second
        Another one. Without it, the last two builds of the first are compared; where there is only one, it is
        compared with the latest other step of that name.
    """
    place = opened(store)
    old, new = (
        _last_two(place, first, store) if second is None else (_build(place, first), _build(place, second))
    )
    say(f"- {_title(old)}", "red")
    say(f"+ {_title(new)}", "green")
    lines = list(_lines(old, new))
    for line in lines[:_SHOWN]:
        say(f"  {line}")
    if (more := len(lines) - _SHOWN) > 0:
        say(f"  and {more:,} more")
    if not lines:
        say("  nothing differs but the time")
    say(f"next: the whole record of one: {command('show', new.head.step_id, store=store)}")


def _last_two(store: Store, step: str, named: str | None) -> tuple[Record, Record]:
    found = find_step(store, step)
    records = store.records(found.place)
    if len(records) > 1:
        return records[-2], records[-1]
    others = [each for each in find_steps(store, found.name) if each.head and each.place != found.place]
    if not records or not others:
        raise ArgumentError(
            f"step {found.id}: expected two builds, or another step of that name, to compare, found "
            f"{counted(len(records), 'build')}; "
            f"to compare it with another step: {command('diff', found.id, 'OTHER', store=named)}"
        )
    latest = max(others, key=lambda each: each.time)
    other = next(each for each in reversed(store.records(latest.place)) if each.number == latest.number)
    return other, records[-1]


def _build(store: Store, called: str) -> Record:
    """The build of that number, else the last one."""
    step, mark, number = called.rpartition("#")
    found = find_step(store, step if mark else called)
    records = store.records(found.place)
    chosen = [each for each in records if not mark or str(each.number) == number]
    if not chosen:
        known = ", ".join(str(each.number) for each in records) or "none"
        raise ArgumentError(f"{called}: step {found.id} has no such build (known: {known})")
    return chosen[-1]


def _title(record: Record) -> str:
    return f"{record.head.step_id} build {record.number}, {when(record.head.started)}"


def _lines(old: Record, new: Record) -> Iterator[str]:
    yield from map(
        str, recipe_changes(old.body.config, new.body.config, old.head.deps.keys(), new.head.deps.keys())
    )
    if old.head.code_hash != new.head.code_hash:
        yield "the code of its function"
    for dep in old.head.deps.keys() & new.head.deps.keys():
        if old.head.deps[dep] != new.head.deps[dep]:
            yield f"build of {dep}: {old.head.deps[dep][:12]} → {new.head.deps[dep][:12]}"
    if old.body.value != new.body.value:
        yield f"value: {_cut(told(old.body.value))} → {_cut(told(new.body.value))}"
    yield from _files(old, new)
    if f"{old.head.seconds:.1f}" != f"{new.head.seconds:.1f}":
        yield f"time: {took(old.head.seconds)} → {took(new.head.seconds)}"
    for name in _PLAIN:
        before, after = getattr(old.body, name), getattr(new.body, name)
        if before != after:
            yield f"{name}: {_cut(before) or 'none'} → {_cut(after) or 'none'}"


def _files(old: Record, new: Record) -> Iterator[str]:
    before = {each.path: each for each in old.head.files}
    after = {each.path: each for each in new.head.files}
    for path in sorted(before.keys() | after.keys()):
        one, other = before.get(path), after.get(path)
        if one is None and other is not None:
            yield f"file {path}: absent → {size(other.bytes)}"
        elif other is None and one is not None:
            yield f"file {path}: {size(one.bytes)} → absent"
        elif one is not None and other is not None and one != other:
            yield f"file {path}: {size(one.bytes)} → {size(other.bytes)}, other content"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
