"""`treadle manifest`: look at a manifest without running it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treadle.integrations.cli.params import parse_params
from treadle.manifest import read_manifest
from treadle.processing.context import UNBOUND
from treadle.processing.plugins import load_plugins
from treadle.processing.runners import check_manifest


def check(file: Path, /, *, param: Annotated[tuple[str, ...], Parameter(negative="")] = ()) -> None:
    """Say what is wrong with a manifest, all at once and each problem with its place; or ok.

    Parameters
    ----------
    file
        The manifest, a YAML file.
    param
        A parameter of the manifest, as NAME=VALUE; may be given several times.
    """
    load_plugins()
    check_manifest(read_manifest(file, parse_params(param), UNBOUND))
    sys.stdout.write("ok\n")
