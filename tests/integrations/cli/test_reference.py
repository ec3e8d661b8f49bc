"""The reference of commands keeps step with the commands: every one, and every option of each."""

import re
from collections.abc import Iterator, Set
from dataclasses import fields
from pathlib import Path

import pytest
from cyclopts import App

from treadle.integrations.cli.app import COMMANDS, MANIFEST_COMMANDS, build_app
from treadle.integrations.cli.options import Asked, Lowering
from treadle.integrations.cli.speaking import Speaking

REFERENCE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
SECTION = re.compile(r"^### `treadle ((?:manifest )?[a-z]+)(.*)`$", re.MULTILINE)
CHAPTER = re.compile(r"^## .*$", re.MULTILINE)
ROW = re.compile(r"^\| `(--[a-z-]+)` \|", re.MULTILINE)
LOWERING = {f"--{each.name.replace('_', '-')}" for each in fields(Lowering)}
ASKED = {f"--{each.name.replace('_', '-')}" for each in fields(Asked)}
SPEAKING = {f"--{each.name.replace('_', '-')}" for each in fields(Speaking)}
SHARED: dict[str, Set[str]] = {
    **dict.fromkeys(("run", "plan", "graph"), ASKED),
    **dict.fromkeys(("why", "gc"), LOWERING),
    **dict.fromkeys(("generate", "chat"), SPEAKING),
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
    ends = sorted(each.start() for pattern in (SECTION, CHAPTER) for each in pattern.finditer(REFERENCE))
    upto = [next((end for end in ends if end > each.end()), len(REFERENCE)) for each in found]
    return {each[1]: REFERENCE[each.end() : end] for each, end in zip(found, upto, strict=True)}


def chapter(title: str) -> str:
    """What a chapter says before its first command."""
    return REFERENCE.split(f"\n## {title}\n")[1].split("\n##")[0]


def test_the_reference_has_every_command() -> None:
    """A command that is not in the reference does not exist for its readers."""
    assert set(sections()) == {name for name, _ in commands()}


@COMMAND
def test_the_reference_has_every_option_of_a_command_and_no_other(name: str, command: App) -> None:
    shared = SHARED.get(name, frozenset())
    assert set(ROW.findall(sections()[name])) == options(command) - shared
    assert shared <= options(command)


def test_the_options_that_commands_share_are_told_once() -> None:
    assert sorted(ROW.findall(chapter("Experiments"))) == sorted(ASKED)
    assert sorted(ROW.findall(chapter("Language models"))) == sorted(SPEAKING)


@COMMAND
def test_the_help_says_what_every_option_is_for(name: str, command: App) -> None:
    arguments = command.assemble_argument_collection(parse_docstring=True)
    assert not [each.names for each in arguments if each.show and not each.parameter.help]
