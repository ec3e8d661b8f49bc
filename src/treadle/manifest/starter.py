"""Commented manifests to begin with, one for each run type; they are files beside this one."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

from treadle.manifest.yaml_text import write_key

# Editors with the YAML language server look for this line.
_EDITOR = "# yaml-language-server: $schema=drtml-4.schema.json\n"


def starters() -> dict[str, str]:
    """Run type -> what it does: the first comment of its file."""
    return {
        each.name.removesuffix(".yaml"): each.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        for each in _folder().iterdir()
        if each.name.endswith(".yaml")
    }


def read_starter(run_type: str, step_id: str) -> str:
    """The manifest for `run_type`, for the step `step_id`."""
    text = _folder().joinpath(f"{run_type}.yaml").read_text("utf-8")
    return _EDITOR + re.sub(r"(?m)^step_id: .*$", lambda _: f"step_id: {write_key(step_id)}", text, count=1)


def _folder() -> Traversable:
    return files("treadle.manifest").joinpath("starters")
