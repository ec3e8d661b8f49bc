"""Identity: one canonical form for a config, and the hash of it.

The form is a JSON tree. What JSON has no word for is an object with one tag, such as
`{"tuple": [...]}`, so that no two different values share a form. Types are named, sets and mappings
sorted, arrays and bytes stand by their content. So the same value has the same fingerprint in every
process, on every machine, under every hash seed, in whatever order it was put together.

What has no content to speak of is refused with the path to it: functions, and objects that would
only give their address.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

from treadle.artifacts.forms import EXACT, RULES, is_plain
from treadle.artifacts.json_form import Json, json_text
from treadle.errors import IdentityError

_DEPTH = 100


class HasForm(Protocol):
    """What stands in an identity by a form of its own, where whoever asks for the identity says so."""

    def canonical_form(self) -> Json:
        """The form; its tag is its own, so that no other value has the same."""
        ...


def fingerprint(value: object, path: str = "value") -> str:
    """SHA-256 of the canonical form, in hex; see `canonical`."""
    return hashlib.sha256(canonical_text(value, path).encode()).hexdigest()


def canonical_text(value: object, path: str = "value", leaf: type[HasForm] | None = None) -> str:
    """The canonical form of `value` as compact JSON in ASCII; see `canonical`."""
    return json_text(canonical(value, path, leaf))


def canonical(value: object, path: str = "value", leaf: type[HasForm] | None = None) -> Json:
    """The canonical form of `value`; `path` is what messages call it.

    Dataclasses and pydantic models stand by their type and fields, enums by type, name and value,
    numpy arrays by dtype, shape and content. A NaN is refused: it does not even equal itself.
    Values of the type `leaf` give their form themselves.

    Raises:
        IdentityError: something in it has no canonical form; names the path, as in
            `config.layers[2].activation`.
    """
    return _Walk(path, leaf).encode(value)


class _Walk:
    """The way from the top of a value to where the walk is: for messages, and to end in a circle."""

    __slots__ = ("leaf", "path", "steps")

    def __init__(self, path: str, leaf: type[HasForm] | None) -> None:
        self.path = path
        self.leaf = leaf
        self.steps: list[tuple[str, Any, Any]] = []

    def encode(self, value: Any) -> Json:
        if is_plain(value):
            return value  # type: ignore[no-any-return]
        if (encode := EXACT.get(type(value))) is not None:
            return encode(value, self)
        if self.leaf is not None and isinstance(value, self.leaf):
            return value.canonical_form()
        for matches, encode in RULES:
            if matches(value):
                return encode(value, self)
        raise self.refusal(
            f"{_described(value)} has no canonical form, so it cannot be part of an identity. "
            "Expected plain data: numbers, strings, paths, dates, enums, arrays, dataclasses, pydantic "
            "models, and lists, tuples, sets and mappings of them. An argument that does not change the "
            "result can be annotated Runtime[...]"
        )

    def inside(self, above: Any, template: str, key: Any, value: Any) -> Json:
        """The form of a part of `above`; `template` says how the part is named by `key`."""
        self.steps.append((template, key, above))
        if len(self.steps) > _DEPTH:
            raise self._too_deep()
        form = self.encode(value)
        self.steps.pop()
        return form

    def refusal(self, message: str) -> IdentityError:
        """The error that names the place where the walk is."""
        return IdentityError(f"{self._place(len(self.steps))}: {message}")

    def _place(self, length: int) -> str:
        return self.path + "".join(template.format(key) for template, key, _ in self.steps[:length])

    def _too_deep(self) -> IdentityError:
        seen: set[int] = set()
        for length, (_, _, above) in enumerate(self.steps):
            if id(above) in seen:
                return IdentityError(
                    f"{self._place(length)}: the value contains itself, so it has no canonical form"
                )
            seen.add(id(above))
        return IdentityError(
            f"{self._place(_DEPTH)}: the value is nested deeper than {_DEPTH} levels, "
            "so it has no canonical form"
        )


def _described(value: object) -> str:
    if callable(value):
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return f"the callable {getattr(value, '__module__', '?')}.{name}"
    return f"a value of type {type(value).__module__}.{type(value).__qualname__}"
