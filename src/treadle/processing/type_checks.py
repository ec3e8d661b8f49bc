"""What each run type needs of a manifest, checked before anything is opened, and without any table."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.engine.catalog import check_ready
from treadle.errors import ManifestError, Problem
from treadle.extras import check_extra
from treadle.manifest import Manifest
from treadle.manifest.model import GenerateSection
from treadle.processing.checks import check_datasets, check_in_process, check_input_columns, required_section
from treadle.processing.prompts import read_template
from treadle.processing.row_transforms import bind_steps, read_transforms
from treadle.processing.sections import (
    ANSWER_COLUMNS,
    TERMS,
    dedup_section,
    main_input,
    only_input,
    reduce_grouping,
    skipgram_options,
)
from treadle.processing.transforms import read_transform


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
    template = read_template(manifest, "generate.prompt", section.prompt)
    if problems := list(_generate_problems(manifest, section)):
        raise ManifestError(problems)
    check_input_columns(manifest, "rows", [section.id_column, *template.columns, *section.keep])
    check_ready(section.model)


def _generate_problems(manifest: Manifest, section: GenerateSection) -> Iterator[Problem]:
    """What the keys of the section say against each other."""
    if section.system is not None and not section.chat:
        yield manifest.problem(
            "generate.system", "nothing, since generate.chat is false", repr(section.system)
        )
    if section.token_budget < section.batch:
        expected = f"at least generate.batch, which is {section.batch}"
        yield manifest.problem("generate.token_budget", expected, str(section.token_budget))
    if (section.preemption == "offload") != (section.host_tokens > 0):
        expected = "a number above 0 with generate.preemption offload, and 0 without it"
        yield manifest.problem("generate.host_tokens", expected, str(section.host_tokens))
    for index, name in enumerate(section.keep):
        if name in ("id", *ANSWER_COLUMNS, *section.keep[:index]):
            expected = (
                f"each column once, and none called id, {', '.join(ANSWER_COLUMNS)}: the output has them"
            )
            yield manifest.problem(f"generate.keep[{index}]", expected, repr(name))
