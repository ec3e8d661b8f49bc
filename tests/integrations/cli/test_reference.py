"""The reference of commands keeps step with the commands: every one, and every option of each."""

import re
from collections.abc import Iterator, Set
from dataclasses import fields
from pathlib import Path

import pytest
from cyclopts import App

from treadle.integrations.cli.app import COMMANDS, MANIFEST_COMMANDS, build_app
from treadle.integrations.cli.options import Asked, Lowering

REFERENCE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
SECTION = re.compile(r"^### `treadle ((?:manifest )?[a-z]+)(.*)`$", re.MULTILINE)
ROW = re.compile(r"^\| `(--[a-z-]+)` \|", re.MULTILINE)
LOWERING = {f"--{each.name.replace('_', '-')}" for each in fields(Lowering)}
ASKED = {f"--{each.name.replace('_', '-')}" for each in fields(Asked)}
SHARED: dict[str, Set[str]] = {
    **dict.fromkeys(("run", "plan", "graph"), ASKED),
    **dict.fromkeys(("why", "gc"), LOWERING),
    **{name: {"--store"} for name in ("ls", "show", "logs", "history", "diff", "verify", "forget")},
}


def commands() -> Iterator[tuple[str, App]]:
    """Every command by the words that call it."""
    app = build_app()
    for name in COMMANDS:
        yield name, app[name]
    for name in MANIFEST_COMMANDS:
        yield f"manifest {name}", app["manifest"][name]


COMMAND = pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda each: each if isinstance(each, str) else ""
)


def options(command: App) -> set[str]:
    """What the command takes, as it is written."""
    names = (name for each in command.assemble_argument_collection() for name in each.names)
    return {name for name in names if name.startswith("--")}


def sections() -> dict[str, str]:
    """Command -> what the reference says of it."""
    found = list(SECTION.finditer(REFERENCE))
    ends = [*(each.start() for each in found[1:]), len(REFERENCE)]
    return {each[1]: REFERENCE[each.end() : end] for each, end in zip(found, ends, strict=True)}


def test_the_reference_has_every_command() -> None:
    """A command that is not in the reference does not exist for its readers."""
    assert set(sections()) == {name for name, _ in commands()}


@COMMAND
def test_the_reference_has_every_option_of_a_command_and_no_other(name: str, command: App) -> None:
    shared = SHARED.get(name, frozenset())
    assert set(ROW.findall(sections()[name])) == options(command) - shared
    assert shared <= options(command)


def test_the_options_that_commands_share_are_told_once() -> None:
    head = REFERENCE[: SECTION.search(REFERENCE).start()]  # type: ignore[union-attr]
    assert sorted(ROW.findall(head)) == sorted(ASKED)


@COMMAND
def test_the_help_says_what_every_option_is_for(name: str, command: App) -> None:
    arguments = command.assemble_argument_collection(parse_docstring=True)
    assert not [each.names for each in arguments if each.show and not each.parameter.help]
