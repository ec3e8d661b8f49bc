"""What a step must satisfy before anything runs, and the place that follows from its name."""

from __future__ import annotations

import inspect
import posixpath
import re
import sys
from pathlib import PurePath
from types import GeneratorType

from treadle.artifacts.prefix import join
from treadle.artifacts.workplace import OWN
from treadle.errors import ArgumentError
from treadle.execution.retry import Retry
from treadle.fray import ResourceConfig

_NAME = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
_LONGEST = 200
"""Of a segment: file systems take 255 bytes, and a folder put aside has a longer name for a moment."""
_FINGERPRINT = re.compile(r"[0-9a-f]{12,64}")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(.*)", re.DOTALL)


def check_name(name: object) -> None:
    """See that `name` is a relative path of plain, short segments, since it becomes a folder.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise ArgumentError(
            f"step name: expected letters, digits, '_', '-' and '.', in segments parted by '/', got {name!r}"
        )
    first, *others = name.split("/")
    if first == OWN:
        raise ArgumentError(
            f"step name: expected another first segment than {OWN!r}, treadle's own folder, got {name!r}"
        )
    if (longest := max(map(len, (first, *others)))) > _LONGEST:
        raise ArgumentError(
            f"step name: expected at most {_LONGEST} characters between slashes, since each part becomes a "
            f"folder, got {longest} in {name!r}"
        )


def check_runs(where: str, fn: object) -> None:
    """See that a call of `fn` runs its body: that of a generator or async function only makes an object.

    Raises:
        ArgumentError: it does not.
    """
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise ArgumentError(
            f"{where}: expected an ordinary function, got {fn!r}, a generator or async function: calling it "
            "runs nothing; collect the items in it, or call asyncio.run in it"
        )


def check_not_used_up(where: str, steps: object) -> None:
    """See that a generator of steps can give some: one that has come to its end looks like no steps at all.

    Raises:
        ArgumentError: it has.
    """
    if isinstance(steps, GeneratorType) and steps.gi_frame is None:
        raise ArgumentError(f"{where}: expected steps, got a generator that is used up: make it anew")


def check_circumstances(where: str, resources: object, retry: object, timeout: object) -> None:
    """See that what surrounds the run of a step is of its kind; `timeout` is in seconds.

    Raises:
        ArgumentError: something is not.
    """
    if not isinstance(resources, ResourceConfig | None):
        raise ArgumentError(f"{where}: resources: expected a ResourceConfig, got {resources!r}")
    if not isinstance(retry, Retry | None):
        raise ArgumentError(f"{where}: retry: expected a Retry, got {retry!r}")
    if timeout is not None and not _is_duration(timeout):
        raise ArgumentError(f"{where}: timeout: expected seconds, more than 0, or None, got {timeout!r}")


def check_fingerprint(where: str, expected: object) -> None:
    """See that `expected` is a fingerprint, or the beginning of one.

    Raises:
        ArgumentError: it is not.
    """
    if expected is not None and not (isinstance(expected, str) and _FINGERPRINT.fullmatch(expected)):
        raise ArgumentError(
            f"{where}: expected_fingerprint: expected 12 to 64 hexadecimal digits in lower case, "
            f"got {expected!r}"
        )


def overridden_place(where: str, store: str, override: object) -> str:
    """The place that `override` names: absolute, a URL, or inside the store.

    Raises:
        ArgumentError: it leaves the store by "..", or holds it.
    """
    if not isinstance(override, str) or not override or ".." in override.split("/"):
        raise ArgumentError(
            f"{where}: override_output_path: expected an absolute path, "
            f"or one inside the store, without '..', got {override!r}"
        )
    is_absolute = override.startswith("/") or _URL.fullmatch(override)
    place = _tidy(override if is_absolute else join(store, override))
    if _tidy(store) == place or _tidy(store).startswith(place.removesuffix("/") + "/"):
        raise ArgumentError(
            f"{where}: override_output_path: expected a folder of the step's own, "
            f"got {place}, which holds the store: the step would clear it"
        )
    return place


def _tidy(path: str) -> str:
    """Without '.', doubled or final slashes; for what lies on an object store too, which has no folders."""
    url = _URL.fullmatch(path)
    if url is None:
        return str(PurePath(path))
    return url[1] + posixpath.normpath(url[2]).removeprefix(".") if url[2] else path


def _is_duration(timeout: object) -> bool:
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    return is_number and 0 < timeout <= sys.float_info.max  # type: ignore[operator]
