"""A step as it is sent to another process: itself, and of its dependencies no more than where they lie.

A step refers to all that it depends on, near and far. Sent with every step of a long chain, that would grow
with the square of its length.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NoReturn

from treadle.errors import StepError
from treadle.execution.identity import Attributes
from treadle.execution.step_spec import StepSpec
from treadle.fray.pickling import TracedPickler

_put = object.__setattr__
_DEP = ("name", "hash_id", "output_path_prefix", "output_path", "id", "version")
"""What is sent of a dependency."""
_KNOWN = (*_DEP, "override_output_path", "source", "dev_origin", "config_text")
"""What is sent of one that the function of the step captures."""
_OWN = (*_KNOWN, "fn", "retry")
_NO_CONFIG = '{"dict":[]}'
_FIELDS = tuple(each.name for each in fields(StepSpec))


class SendingPickler(TracedPickler):
    """Pickles what belongs to `step`. Where its dependencies are met, they are sent as where they lie."""

    def __init__(self, file: io.IOBase | Any) -> None:
        super().__init__(file)
        self._step: StepSpec | None = None
        self._deps: Mapping[int, StepSpec] = {}

    def send(self, step: StepSpec, value: object) -> None:
        """Pickle `value`, which may be or hold the step."""
        self._step = step
        self._deps = {id(dep): dep for dep in step.deps}
        self.dump(value)

    def reducer_override(self, value: Any) -> Any:
        """See `pickle.Pickler.reducer_override`."""
        if type(value) is not StepSpec:
            return super().reducer_override(value)
        if value is self._step:
            return _restored, (_values(value, _OWN), tuple(_values(dep, _DEP) for dep in value.deps))
        if id(value) in self._deps:
            return _restored_dep, (_values(value, _KNOWN),)
        return NotImplemented


def sent_with(step: StepSpec, value: object) -> bytes:
    """`value`, which may be or hold the step, as bytes; what pickling raises is passed on."""
    file = io.BytesIO()
    SendingPickler(file).send(step, value)
    return file.getvalue()


def _values(step: StepSpec, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple([getattr(step, name) for name in names])


def _restored(values: tuple[Any, ...], deps: tuple[tuple[Any, ...], ...]) -> StepSpec:
    return _made(_OWN, values, deps=tuple(_made(_DEP, each, fn=left_behind) for each in deps))


def _restored_dep(values: tuple[Any, ...]) -> StepSpec:
    return _made(_KNOWN, values, fn=left_behind)


def _made(names: tuple[str, ...], values: tuple[Any, ...], **others: object) -> StepSpec:
    found = {"deps": (), "config_text": _NO_CONFIG, **dict(zip(names, values, strict=True)), **others}
    found["hash_attrs"] = Attributes(str(found["config_text"]))
    step = object.__new__(StepSpec)
    for name in _FIELDS:
        _put(step, name, found.get(name))
    return step


class _LeftBehind:
    """Stands for the function of a dependency."""

    # Whoever hashes its code finds none, so it is no other code than before.
    __wrapped__: Callable[..., object] | None = None

    def __call__(self, path: str) -> NoReturn:
        raise StepError(
            f"{path}: the step came to another process as a dependency, without its function and its own "
            "dependencies, so it cannot be built there; build it in the run that sent it"
        )


left_behind = _LeftBehind()
