"""The names that the shipped schema suggests; `python tests/manifest/names.py` writes the schema anew."""

from __future__ import annotations

from pathlib import Path

from treadle.manifest.schema import SCHEMA_FILE, build_schema

RUN_TYPES = (
    "cluster",
    "custom",
    "dedup",
    "embed_train",
    "generate",
    "mapping",
    "partition",
    "reduce",
    "transform",
)
FORMATS = ("arrow", "csv", "jsonl", "parquet", "postgres", "text")
SUGGESTIONS = {
    "RunSection.type": RUN_TYPES,
    "DatasetSection.backend": FORMATS,
    "OutputSection.backend": FORMATS,
}
ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "manifest.md"
SHIPPED = ROOT / "src" / "treadle" / "manifest" / SCHEMA_FILE


def built() -> str:
    """The schema of the model, the reference and these names."""
    return build_schema(REFERENCE.read_text(), SUGGESTIONS)


if __name__ == "__main__":
    SHIPPED.write_text(built())
