"""What each run type needs of a manifest, checked before anything is opened, and without any table."""

from __future__ import annotations

from treadle.domain.grouping import Aggregate, Grouping
from treadle.domain.skipgram_options import SkipGramOptions
from treadle.engine.catalog import check_ready
from treadle.errors import ArgumentError, ManifestError
from treadle.extras import check_extra
from treadle.manifest import Manifest
from treadle.manifest.model import DedupSection, EmbedTrainSection, GenerateSection, ReduceSection
from treadle.processing.checks import (
    check_datasets,
    check_in_process,
    check_input_columns,
    required_section,
    setting_errors_at,
)
from treadle.processing.prompts import read_template
from treadle.processing.row_transforms import bind_steps, read_transforms
from treadle.processing.transforms import TransformOptions, read_transform

TERMS = Grouping(
    ("term",),
    {"count": Aggregate("sum", "count"), "documents": Aggregate("sum", "documents")},
    types={"term": "string", "count": "int64", "documents": "int64"},
)
"""What run type `mapping` makes of the registries."""


def check_partition(manifest: Manifest) -> None:
    """Raises ManifestError: an unknown transform or option, a dataset missing or unknown."""
    options = read_transform(manifest)
    check_datasets(
        manifest,
        inputs={main_input(manifest, options), *options.side_inputs},
        outputs={"rows"},
        optional={"registry"},
    )


def check_transform(manifest: Manifest) -> None:
    """Raises ManifestError: an unknown transform or option, a function that cannot be imported, a dataset."""
    bind_steps(manifest, read_transforms(manifest))
    check_datasets(manifest, inputs={only_input(manifest)}, outputs={"rows"})


def check_mapping(manifest: Manifest) -> None:
    """Raises ManifestError: a dataset missing or unknown."""
    check_datasets(manifest, inputs={"registry"}, outputs={"mapping"})
    check_input_columns(manifest, "registry", TERMS.columns)


def check_reduce(manifest: Manifest) -> None:
    """Raises ManifestError: no section `reduce`, names at odds, a dataset missing or unknown."""
    check_datasets(manifest, inputs={"rows"}, outputs={"sums"})
    grouping = reduce_grouping(manifest)
    check_input_columns(manifest, "rows", grouping.columns)


def check_dedup(manifest: Manifest) -> None:
    """Raises ManifestError: a dataset missing or unknown; MissingExtraError: minhash without its extra."""
    check_datasets(manifest, inputs={"rows"}, outputs={"rows"}, optional={"duplicates"})
    section = dedup_section(manifest)
    check_input_columns(manifest, "rows", section.columns)
    if section.method == "minhash":
        check_extra("dedup", "dedup.method minhash", "rensa")


def check_embed_train(manifest: Manifest) -> None:
    """Raises ManifestError: a setting out of range, a dataset missing or unknown."""
    check_in_process(manifest)
    check_datasets(manifest, inputs={"tokens", "mapping"}, outputs={"vectors"})
    skipgram_options(manifest)


def check_cluster(manifest: Manifest) -> None:
    """Raises ManifestError: no section `cluster`, a dataset missing or unknown."""
    required_section(manifest, "cluster", manifest.cluster)
    check_datasets(manifest, inputs={"vectors"}, outputs={"centroids", "assignments"})


def check_generate(manifest: Manifest) -> None:
    """Check the manifest against its run type, and that the model is available, before anything runs.

    Raises:
        ManifestError: no section `generate`, no template in it, a dataset missing or unknown.
        UsageError: the model is unknown, or what it takes to run it is not installed.
    """
    section = required_section(manifest, "generate", manifest.generate)
    check_in_process(manifest)
    check_datasets(manifest, inputs={"rows"}, outputs={"answers"})
    _check_system(manifest, section)
    read_template(manifest, "generate.prompt", section.prompt)
    check_ready(section.model)


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


def _check_system(manifest: Manifest, section: GenerateSection) -> None:
    if section.system is not None and not section.chat:
        problem = manifest.problem(
            "generate.system", "nothing, since generate.chat is false", repr(section.system)
        )
        raise ManifestError([problem])
