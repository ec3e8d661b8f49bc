"""What a manifest tells a run type, beyond the model: its sections with their defaults, its inputs.

Both the checks and the runs read it, so no table is loaded here.
"""

from __future__ import annotations

from treadle.domain.grouping import Aggregate, Grouping
from treadle.domain.skipgram_options import SkipGramOptions
from treadle.errors import ArgumentError, ManifestError
from treadle.manifest import Manifest
from treadle.manifest.model import DedupSection, EmbedTrainSection, ReduceSection
from treadle.processing.checks import required_section, setting_errors_at
from treadle.processing.transforms import TransformOptions

TERMS = Grouping(
    ("term",),
    {"count": Aggregate("sum", "count"), "documents": Aggregate("sum", "documents")},
    types={"term": "string", "count": "int64", "documents": "int64"},
)
"""What run type `mapping` makes of the registries."""

ANSWER_COLUMNS = ("answer", "prompt_tokens", "new_tokens", "finish_reason", "seconds")
"""What run type `generate` writes beside columns of the row."""


def main_input(manifest: Manifest, options: TransformOptions) -> str:
    """The one input that is no side input of the transform. Raises ManifestError: none, or several."""
    side = set(options.side_inputs)
    candidates = sorted(set(manifest.inputs) - side)
    if len(candidates) != 1:
        expected = "one input" + (f" beside {', '.join(sorted(side))}" if side else "")
        problem = manifest.problem("inputs", expected, ", ".join(candidates) or "none")
        raise ManifestError([problem])
    return candidates[0]


def only_input(manifest: Manifest) -> str:
    """The one input. Raises ManifestError: none, or several."""
    if len(manifest.inputs) != 1:
        found = ", ".join(sorted(manifest.inputs)) or "none"
        raise ManifestError([manifest.problem("inputs", "one input", found)])
    return next(iter(manifest.inputs))


def reduce_section(manifest: Manifest) -> ReduceSection:
    """The section `reduce`. Raises ManifestError when there is none."""
    return required_section(manifest, "reduce", manifest.reduce)


def reduce_grouping(manifest: Manifest) -> Grouping:
    """What the section `reduce` asks for. Raises ManifestError: no section, names at odds."""
    section = reduce_section(manifest)
    asked = {name: Aggregate(each.function, each.column) for name, each in section.aggregates.items()}
    with setting_errors_at(manifest, "reduce"):
        if twice := sorted({name for name in section.sums if section.sums.count(name) > 1 or name in asked}):
            raise ArgumentError(f"sums and aggregates must be distinct, {', '.join(twice)} is there twice")
        return Grouping(section.keys, {name: Aggregate("sum", name) for name in section.sums} | asked)


def dedup_section(manifest: Manifest) -> DedupSection:
    """The section `dedup`, which may be left out."""
    return manifest.dedup or DedupSection()


def skipgram_options(manifest: Manifest) -> SkipGramOptions:
    """How to train. Raises ManifestError: a setting out of range."""
    section = manifest.embed_train or EmbedTrainSection()
    with setting_errors_at(manifest, "embed_train"):
        return SkipGramOptions(**section.model_dump())
