"""Rows to requests for the engine, and the keys by which their answers are known again.

What is asked about a row depends on its id and on what the prompt names of it, and on nothing else of the
data: not on its file, on its place there, or on the rows beside it. So its key and its seed come from these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path

import pyarrow as pa

from treadle.engine import GenerationRequest, Message
from treadle.engine.catalog import locate
from treadle.manifest.model import GenerateSection
from treadle.processing.prompts import Template

Row = Mapping[str, object]


class RowRequests:
    """Makes the request of a row.

    Args:
        section: how the model is asked.
        template: the prompt.
        seed: that of the run, which the seed of each row comes from.
    """

    def __init__(self, section: GenerateSection, template: Template, seed: int) -> None:
        self._section = section
        self._template = template
        self._seed = seed
        self.columns = tuple(dict.fromkeys([section.id_column, *template.columns]))

    def unusable(self, row: Row) -> str | None:
        """Why the row cannot be asked about, or None."""
        return next((f"{name} is null" for name in self.columns if row[name] is None), None)

    def request(self, name: str, row: Row) -> GenerationRequest:
        """The request of a row, called `name`."""
        section = self._section
        text = self._template.fill(row)
        return GenerationRequest(
            name,
            self._chat(text) if section.chat else text,
            section.max_new_tokens,
            section.stop,
            section.stop_tokens,
            temperature=section.temperature,
            top_k=section.top_k,
            top_p=section.top_p,
            min_p=section.min_p,
            repetition_penalty=section.repetition_penalty,
            seed=row_seed(self._seed, row[section.id_column]),
        )

    def _chat(self, text: str) -> tuple[Message, ...]:
        system = self._section.system
        return (*((Message("system", system),) if system is not None else ()), Message("user", text))


def plain_rows(rows: pa.RecordBatch, columns: Sequence[str]) -> Sequence[Row]:
    """These columns of the rows as Python's values, dates and times as text: Python's have no nanoseconds,
    and no years after 9999.
    """
    chosen = rows.select(list(columns))
    for place, field in enumerate(chosen.schema):
        if pa.types.is_temporal(field.type):
            chosen = chosen.set_column(place, field.name, chosen.column(place).cast(pa.string()))
    return chosen.to_pylist()


def row_seed(seed: int, row_id: object) -> int:
    """The seed of a row: the first 63 bits of a SHA-256 of the run's seed and the row's id."""
    return int(_digest(seed, row_id)[:16], 16) >> 1


def answerer_identity(section: GenerateSection) -> str:
    """Changes when the answer to one and the same request may: with the model, how it is run, or treadle."""
    model = files_identity(locate(section.model))
    return _digest(metadata.version("treadle"), model, section.precision, section.kernels)


def request_key(answerer: str, request: GenerationRequest) -> str:
    """Stands for all that is asked, but for the name of the request, and for who answers; 32 hex digits."""
    return _digest(answerer, asdict(replace(request, id="")))[:32]


def files_identity(path: Path) -> str:
    """Changes when the file at `path`, or one in that folder, does: names, sizes and times of change."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    found = [(each, each.stat()) for each in files]
    return _digest(*((each.name, stat.st_size, stat.st_mtime_ns) for each, stat in found))


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()
