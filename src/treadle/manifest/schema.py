"""The JSON Schema of the language, for editors: made from the model, with the words of the reference.

What is checked here is what an editor can know: keys, types and bounds. Run types, formats and the options of
transforms come from registries, so they are suggested and not enforced; `treadle manifest check` knows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from treadle.manifest.model import Manifest

SCHEMA_FILE: Final = "drtml-4.schema.json"
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_PLACEHOLDER: Final = {"type": "string", "pattern": r"\$\{"}
_UNFILLED: Final = ("ParamSection",)
_INCLUDE: Final = {
    "description": "Files merged under this one, later ones over earlier ones.",
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {"path": {"type": "string"}, "at": {"type": "string"}},
                "required": ["path", "at"],
                "additionalProperties": False,
            },
        ]
    },
}

_HEAD: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "DRTML 4, a manifest of treadle",
}

Schema = dict[str, Any]


def shipped_schema() -> str:
    """The schema as it is in the package: JSON text."""
    return files("treadle.manifest").joinpath(SCHEMA_FILE).read_text("utf-8")


def build_schema(reference: str, suggestions: Mapping[str, Sequence[str]]) -> str:
    """The schema, made anew: JSON text.

    `reference` is the text of the reference, whose tables give the descriptions. `suggestions` are the
    registered names by field: `RunSection.type`, `DatasetSection.backend` and so on.
    """
    schema = Manifest.model_json_schema()
    definitions: Schema = schema.pop("$defs")
    tables = _tables(reference)
    for name, definition in definitions.items():
        _describe(definition, tables)
        _suggest(definition, name, suggestions)
        if name not in _UNFILLED:
            _let_placeholders_in(definition)
    _describe(schema, tables)
    schema["properties"]["include"] = _INCLUDE
    # What an include brings cannot be asked for in the file itself.
    schema["anyOf"] = [{"required": schema.pop("required")}, {"required": ["include"]}]
    whole = _HEAD | {key: value for key, value in schema.items() if key != "title"}
    return json.dumps(whole | {"$defs": definitions}, indent=2) + "\n"


def _tables(reference: str) -> list[dict[str, str]]:
    """Each table of keys in the reference: key -> what is said of it, in a sentence."""
    found = (dict(_said(each)) for each in reference.split("\n\n") if each.lstrip().startswith("| "))
    return sorted((table for table in found if table), key=len)


def _said(table: str) -> Iterator[tuple[str, str]]:
    for name, kind, default, example in _ROW.findall(table):
        yield name, f"{kind}; by default {default}. {example}".replace("by default required", "required")


def _describe(definition: Schema, tables: Sequence[Mapping[str, str]]) -> None:
    """Give the keys of a section the words of the smallest table that has them all."""
    properties: Schema = definition.get("properties", {})
    table: Mapping[str, str] = next((each for each in tables if each.keys() >= properties.keys()), {})
    for name, each in properties.items():
        each.pop("title", None)
        if name in table:
            each["description"] = table[name]


def _suggest(definition: Schema, name: str, suggestions: Mapping[str, Sequence[str]]) -> None:
    for field, known in suggestions.items():
        owner, _, key = field.partition(".")
        if owner == name:
            definition["properties"][key]["examples"] = list(known)


def _let_placeholders_in(definition: Schema) -> None:
    """A value of any type may be a placeholder instead."""
    for name, each in definition.get("properties", {}).items():
        definition["properties"][name] = _or_placeholder(each)


def _or_placeholder(value: Schema) -> Schema:
    said: Schema = {key: value[key] for key in ("description", "default", "examples") if key in value}
    rest = {key: each for key, each in value.items() if key not in said}
    for key in ("items", "additionalProperties"):
        if isinstance(rest.get(key), dict):
            rest[key] = _or_placeholder(rest[key])
    kinds = [each for each in rest.pop("anyOf", [rest]) if each]
    return said | {"anyOf": [*kinds, _PLACEHOLDER]} if kinds else value  # of any type: text is fine
