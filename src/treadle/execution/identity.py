"""The identity of a step: the text of its recipe, the hash of it, and what dependents call it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

from treadle.artifacts import Json
from treadle.artifacts.fingerprint import canonical_text


class Attributes(Mapping[str, Json]):
    """The `hash_attrs` of a lowered step: canonical forms, read from the text when they are asked for."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __getitem__(self, key: str) -> Json:
        return self._content()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content())

    def __len__(self) -> int:
        return len(self._content())

    def _content(self) -> dict[str, Json]:
        return dict(json.loads(self.text)["dict"])


def attributes_text(where: str, attributes: Mapping[str, object]) -> str:
    """The canonical form of attributes, as JSON.

    Raises:
        IdentityError: something in them has none; the message begins with `where`.
    """
    if isinstance(attributes, Attributes):
        return attributes.text
    return canonical_text(attributes, where)


def identify(name: str, config_text: str, dep_identities: Iterable[str]) -> str:
    """The fingerprint of a recipe, in hex; the order of the dependencies does not matter."""
    deps = '","'.join(sorted(set(dep_identities)))  # names and versions are plain: nothing to escape
    return hashlib.sha256(f'["{name}",{config_text},["{deps}"]]'.encode()).hexdigest()


def identity_of(name: str, version: str | None, hash_id: str) -> str:
    """What a step is called in the identity of its dependents: `name@version`, or by its fingerprint."""
    return f"{name}@{version}" if version is not None else f"{name}-{hash_id}"
