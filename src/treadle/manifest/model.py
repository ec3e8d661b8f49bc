"""DRTML 4 as a typed, frozen model: every key a manifest may have, with its type, bounds and default.

The reference for people is `docs/manifest.md`. Names of run types and of transforms are not known here:
they are registered by rooms above, which check them and report with `Manifest.problem`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from treadle.errors import Problem
from treadle.manifest.places import Section, nearest_entry, trail_of
from treadle.manifest.problems import problem_at
from treadle.manifest.spelling import PRESENT, Spelling

Text = Annotated[str, Field(min_length=1)]
Columns = tuple[Text, ...]
Count = Annotated[int, Field(ge=1)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Chance = Annotated[float, Field(gt=0, le=1)]
NotNegative = Annotated[int, Field(ge=0)]
Interval = Annotated[float, Field(gt=0, le=86_400)]
ColumnType = Literal["bool", "int64", "float64", "string"]


class StrictSection(BaseModel):
    """A mapping of known keys, whose values are of the named types and are not converted."""

    # Built when something is first validated: a worker gets its manifest as it is, and validates nothing.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    taken_before: ClassVar[tuple[str, ...]] = ()  # keys that may be written but are used up before validation


class ParamSection(StrictSection):
    """The declaration of one param; without `default` it is required."""

    type: Literal["str", "int", "float", "bool", "path", "list"]
    default: Any = None
    min: float | None = None
    max: float | None = None
    choices: Annotated[tuple[Any, ...], Field(min_length=1)] | None = None
    help: str | None = None

    @property
    def required(self) -> bool:
        """Whether a value must be given; `default: null` makes a param optional."""
        return "default" not in self.model_fields_set


class RunSection(StrictSection):
    """What to run: a registered run type, or `entry`, a dotted callable."""

    type: Text
    entry: Text | None = None


class DatasetSection(StrictSection):
    """Where an input lies: a file, a folder, a glob or a URL; or a table of a database."""

    backend: Text
    path: Text
    columns: Columns | None = None
    types: dict[Text, ColumnType] = Field(default_factory=dict)
    missing: Literal["reject", "null"] = "reject"
    split_bytes: Count | None = 128 * 2**20
    options: dict[Text, Any] = Field(default_factory=dict)


class OutputSection(StrictSection):
    """Where an output goes: a folder, a prefix of an object store, or a table of a database."""

    backend: Text
    path: Text
    compression: Text | None = None
    mode: Literal["error", "overwrite", "append"] = "error"
    lanes: Count = 1
    on_type_change: Literal["refuse", "text"] = "refuse"
    options: dict[Text, Any] = Field(default_factory=dict)


class TransformSection(StrictSection):
    """The name of a registered transform; every other key is an option of that transform."""

    model_config = ConfigDict(extra="allow")

    name: Text

    @property
    def options(self) -> Mapping[str, object]:
        """The options as written: lists are tuples, mappings are dicts."""
        return dict(self.model_extra or {})


class MappingSection(StrictSection):
    """Which terms get an id."""

    min_count: Count = 1
    max_terms: Count | None = None


class AggregateSection(StrictSection):
    """One column made of all rows of a group."""

    function: Literal["count", "sum", "min", "max", "mean", "list"]
    column: Text | None = None


class ReduceSection(StrictSection):
    """Sums, or other aggregates, of some columns over groups of equal keys."""

    keys: Annotated[Columns, Field(min_length=1)]
    sums: Columns = ()
    aggregates: dict[Text, AggregateSection] = Field(default_factory=dict)
    buckets: Count | None = None
    memory_rows: Count = 1_000_000


class DedupSection(StrictSection):
    """Which rows are the same."""

    columns: Annotated[Columns, Field(min_length=1)] = ("text",)
    method: Literal["exact", "normalized", "minhash"] = "exact"
    threshold: Fraction = 0.8
    permutations: Count = 128
    ngram: Count = 5


class EmbedTrainSection(StrictSection):
    """Skip-gram with negative sampling."""

    dimensions: Count = 96
    window: Count = 10
    negatives: Count = 8
    epochs: Count = 5
    learning_rate: Positive = 0.05
    subsample: Annotated[float, Field(ge=0)] = 3e-4
    batch_pairs: Count = 8192


class ClusterSection(StrictSection):
    """k-means over vectors."""

    clusters: Count
    iterations: Count = 100
    tolerance: Annotated[float, Field(ge=0)] = 1e-4
    sample_rows: Count = 20_000
    spherical: bool = True


class GenerateSection(StrictSection):
    """Prompts made of rows, answered by a language model.

    `cache_tokens` None is room for the model's context, or for 512 tokens a row of `batch` when that is more.
    """

    model: Text
    prompt: Text
    system: str | None = None
    chat: bool = True
    id_column: Text = "id"
    keep: Columns = ()
    max_new_tokens: Count = 16
    stop: tuple[Text, ...] = ()
    stop_tokens: tuple[NotNegative, ...] = ()
    temperature: Annotated[float, Field(ge=0)] = 0.0
    top_k: NotNegative = 0
    top_p: Chance = 1.0
    min_p: Annotated[float, Field(ge=0, le=1)] = 0.0
    repetition_penalty: Positive = 1.0
    precision: Literal["float32", "bfloat16", "int8"] = "float32"
    kernels: Literal["auto", "torch", "native"] = "auto"
    threads: Count | None = None
    batch: Count = 16
    token_budget: Count = 512
    cache_tokens: Count | None = None
    prefix_cache: bool = True
    preemption: Literal["never", "recompute", "offload"] = "never"
    host_tokens: NotNegative = 0


class ParallelismSection(StrictSection):
    """Where the units of a run are worked on, and how the stages run there.

    `workers` None: as many as the client has. `batch_rows` None: as many as suit the work.
    """

    backend: Literal["inprocess", "processes", "ray"] = "inprocess"
    workers: Count | None = None
    assign: Literal["pull", "static"] = "pull"
    batch_rows: Count | None = None
    queue_depth: Count = 8


class CheckpointSection(StrictSection):
    """Each finished unit is kept, so that a run that was killed goes on where it was."""

    path: Text | None = None


class ErrorsSection(StrictSection):
    """What a bad row does, and how many are too many."""

    on_bad_row: Literal["fail", "skip", "quarantine"] = "fail"
    max_bad_fraction: Fraction | None = None
    max_bad_rows: Annotated[int, Field(ge=0)] | None = None


class RuntimeSection(StrictSection):
    """Settings of the run as a whole."""

    metrics_enabled: bool = False
    seed: Annotated[int, Field(ge=0)] = 0


class PrometheusSection(StrictSection):
    """How Prometheus gets the metrics of a run.

    `pull`: it asks at `address`; `push`: they are sent to the gateway at `url`; `textfile`: they are written
    to `path` for the collector of a node exporter.
    """

    mode: Literal["pull", "push", "textfile"]
    address: Text = "127.0.0.1:0"
    url: Text | None = None
    path: Text | None = None
    job: Text = "treadle"
    interval: Interval = 5.0


class MetricsSection(StrictSection):
    """Where events and metrics go."""

    log: Text | None = None
    trace: Text | None = None
    interval: Interval = 1.0
    prometheus: PrometheusSection | None = None


@dataclass(frozen=True)
class Execution:
    """How a run is dispatched.

    Version 4 and 3: the run type `pattern` when it is registered, else the dotted callable `entry`. Older
    (2): the registered `mode`, else `entry`, which is there called `runner`. A manifest that names an entry
    only has the pattern, or mode, "custom".
    """

    version: int = PRESENT
    pattern: str | None = None
    mode: str | None = None
    entry: str | None = None


class Manifest(StrictSection):
    """A whole manifest, with its includes merged and its placeholders filled."""

    taken_before = ("include",)

    drtml_version: Literal[4]
    step_id: Text
    params: dict[str, ParamSection] = Field(default_factory=dict)
    run: RunSection
    inputs: dict[str, DatasetSection] = Field(default_factory=dict)
    outputs: dict[str, OutputSection] = Field(default_factory=dict)
    transform: TransformSection | None = None
    transforms: tuple[TransformSection, ...] = ()
    mapping: MappingSection | None = None
    reduce: ReduceSection | None = None
    dedup: DedupSection | None = None
    embed_train: EmbedTrainSection | None = None
    cluster: ClusterSection | None = None
    generate: GenerateSection | None = None
    parallelism: ParallelismSection = ParallelismSection()
    checkpoint: CheckpointSection | None = None
    errors: ErrorsSection = ErrorsSection()
    runtime: RuntimeSection = RuntimeSection()
    metrics: MetricsSection = MetricsSection()

    _tree: Section = PrivateAttr()
    _digest: str = PrivateAttr()
    _spelling: Spelling = PrivateAttr(default=Spelling())

    @property
    def execution(self) -> Execution:
        """What is run, by the version that the manifest was written in."""
        version, run = self._spelling.version, self.run
        if version < 3:
            return Execution(version, mode=run.type, entry=run.entry)
        return Execution(version, pattern=run.type, entry=run.entry)

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of the merged document before params: comments and order of keys play no part."""
        return self._digest

    def keep_origin(self, tree: Section, digest: str, spelling: Spelling) -> Manifest:
        """Self, with what it was made from; for the loader only."""
        self._tree = tree
        self._digest = digest
        self._spelling = spelling
        return self

    def problem(self, field_path: str, expected: str, found: str, nearest: str | None = None) -> Problem:
        """A problem at the place of a field (`inputs.documents.columns[1]`), for checks made above.

        A field that is not written down is placed at the nearest section around it. Nothing is raised.
        """
        trail = trail_of(field_path)
        place = nearest_entry(self._tree, trail).key
        return problem_at(place, self._spelling.old(trail), expected, found, nearest)
