"""`treadle manifest new` and `schema`: a commented manifest to begin with, and what editors want to know."""

from __future__ import annotations

import sys
from pathlib import Path

from treadle.errors import ArgumentError, UnknownNameError
from treadle.integrations.cli.console import check_place, command, table
from treadle.manifest import load_manifest_path, read_starter, shipped_schema, starters


def new(run_type: str | None = None, file: Path | None = None, /) -> None:
    """Write a commented manifest of a run type to begin with; without a type, list the types.

    Parameters
    ----------
    run_type
        The run type.
    file
        The file to write; by default TYPE.yaml. One that exists is left as it is.
    """
    if run_type is None:
        table(("type", "what it does"), sorted(starters().items()))
        sys.stdout.write(f"next: {command('manifest', 'new', 'TYPE')}\n")
        return
    if run_type not in starters():
        raise UnknownNameError("run type", run_type, sorted(starters()))
    target = Path(f"{run_type}.yaml") if file is None else file
    check_place(target)
    try:
        with target.open("x", encoding="utf-8") as opened:  # exclusive: nobody's file is replaced
            opened.write(read_starter(run_type, target.stem))
    except FileExistsError as error:
        raise ArgumentError(f"{target} exists already, and is left as it is; name another file") from error
    given = [word for name in load_manifest_path(target).required for word in ("--param", f"{name}=...")]
    sys.stdout.write(f"wrote {target}\nnext: {command('manifest', 'check', str(target), *given)}\n")


def schema(*, output: Path | None = None) -> None:
    """Print the JSON Schema of the language, for editors.

    Parameters
    ----------
    output
        The file to write instead; one that exists is replaced.
    """
    if output is None:
        sys.stdout.write(shipped_schema())
        return
    check_place(output)
    output.write_text(shipped_schema(), encoding="utf-8")
    sys.stdout.write(
        f"wrote {output}; name it in the first line of a manifest:\n"
        f"# yaml-language-server: $schema={output}\n"
    )
