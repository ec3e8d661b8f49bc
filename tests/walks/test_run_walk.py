"""The run walk from end to end: six manifests, each reading what others wrote, on real sentences."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from treadle.processing import RunContext, RunOutcome, run_from_manifest
from treadle.storage import Dataset, read_output_manifest, read_table
from treadle.telemetry import (
    MetricsFinalized,
    PhaseEnded,
    PhaseStarted,
    RecordingSink,
    RunEnded,
    RunStarted,
    UnitDone,
)

SEA = (
    "The old ship left the harbour before dawn and the sailors watched the grey sea.",
    "A captain who loves the sea will never sell his ship, whatever the harbour master pays.",
    "Sailors pulled the nets out of the cold sea until the deck of the ship shone with fish.",
    "In the harbour the sailors mend their sails while the captain reads the chart of the sea.",
    "The storm drove the ship far out to sea, and the captain lashed himself to the mast.",
    "Fish were scarce that year, so the ship stayed in the harbour and the sailors went ashore.",
)
FARM = (
    "The farmer ploughed the field behind two horses and sowed wheat before the rain.",
    "Wheat stood high in the field, and the farmer counted the weeks to the harvest.",
    "Horses and cows grazed beside the barn while the farmer mended the fence of the field.",
    "After the harvest the barn was full of wheat and the horses rested in the field.",
    "The farmer sold two cows at the market and bought seed for the field of wheat.",
    "Rain fell on the barn all night, but the wheat in the field was safe and the harvest near.",
)
ROWS = [
    {
        "id": f"{year}-{number}",
        "year": year,
        "text": " ".join((texts[number], texts[(number + 1 + year % 3) % 6])),
    }
    for year in range(1900, 1912)
    for texts in (SEA, FARM)
    for number in range(6)
]

MANIFESTS = {
    "partition": """
        params: {corpus: {type: path}}
        run: {type: partition}
        inputs: {documents: {backend: jsonl, path: "${params.corpus}/*.jsonl.gz"}}
        transform: {name: tokenize, keep: [id, year], group_by: year}
        outputs:
          rows: {backend: parquet, path: rows}
          registry: {backend: parquet, path: registry}
        parallelism: {batch_rows: 7, queue_depth: 1}
        errors: {on_bad_row: quarantine, max_bad_rows: 3}
        runtime: {metrics_enabled: true}
    """,
    "mapping": """
        params: {partition: {type: path}, min_count: {type: int, default: 2, min: 1}}
        run: {type: mapping}
        inputs: {registry: {backend: parquet, path: "${params.partition}/registry"}}
        mapping: {min_count: "${params.min_count}"}
        outputs: {mapping: {backend: parquet, path: mapping}}
    """,
    "reduce": """
        params: {partition: {type: path}}
        run: {type: reduce}
        inputs: {rows: {backend: parquet, path: "${params.partition}/registry"}}
        reduce: {keys: [group], sums: [count]}
        outputs: {sums: {backend: jsonl, path: sums}}
    """,
    "embed_train": """
        params: {partition: {type: path}, mapping: {type: path}}
        run: {type: embed_train}
        inputs:
          tokens: {backend: parquet, path: "${params.partition}/rows"}
          mapping: {backend: parquet, path: "${params.mapping}/mapping"}
        embed_train: {dimensions: 16, epochs: 20, subsample: 0.01, batch_pairs: 256}
        outputs: {vectors: {backend: parquet, path: vectors}}
        runtime: {seed: 7}
    """,
    "embed": """
        params: {partition: {type: path}, train: {type: path}}
        run: {type: partition}
        inputs:
          tokens: {backend: parquet, path: "${params.partition}/rows"}
          vectors: {backend: parquet, path: "${params.train}/vectors"}
        transform: {name: embed, keep: [id, year], components: 0}
        outputs: {rows: {backend: parquet, path: rows}}
    """,
    "cluster": """
        params: {embed: {type: path}}
        run: {type: cluster}
        inputs: {vectors: {backend: parquet, path: "${params.embed}/rows"}}
        cluster: {clusters: 2}
        outputs:
          centroids: {backend: parquet, path: centroids}
          assignments: {backend: parquet, path: assignments}
        parallelism: {batch_rows: 10}
        runtime: {seed: 3}
    """,
}
NEEDS = {
    "partition": ["corpus"],
    "mapping": ["partition"],
    "reduce": ["partition"],
    "embed_train": ["partition", "mapping"],
    "embed": ["partition", "train"],
    "cluster": ["embed"],
}
FOLDERS = {"train": "embed_train"}


def write_corpus(folder: Path) -> None:
    folder.mkdir()
    for shard in range(3):
        lines = [json.dumps(row) for row in ROWS[shard::3]]
        if shard == 1:
            lines.insert(2, '{"id": "torn", "year": 19')
            lines.append('{"id": "silent", "year": 1900, "text": null}')
        (folder / f"part-{shard}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def walk(root: Path, corpus: Path, sinks: Mapping[str, RecordingSink]) -> dict[str, RunOutcome]:
    """Run the manifests in order below `root`."""
    outcomes = {}
    for step, body in MANIFESTS.items():
        lines = [line[8:] for line in body.strip("\n").split("\n")]
        manifest = root / f"{step}.yaml"
        root.mkdir(exist_ok=True)
        manifest.write_text("\n".join(["drtml_version: 4", f"step_id: walk.{step}", *lines]))
        params = {name: str(root / FOLDERS.get(name, name)) for name in NEEDS[step]}
        if step == "partition":
            params = {"corpus": str(corpus)}
        ctx = RunContext.create(
            f"walk.{step}", root / step, params={"min_count": 3} if step == "mapping" else None
        )
        outcomes[step] = run_from_manifest(manifest, ctx, params, sink=sinks.get(step))
    return outcomes


def table(root: Path, step: str, output: str, backend: str = "parquet") -> pa.Table:
    return read_table(Dataset(backend, str(root / step / output)))


def files_below(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, RunOutcome], RecordingSink]:
    root = tmp_path_factory.mktemp("walk")
    write_corpus(root / "corpus")
    sink = RecordingSink()
    return root / "runs", walk(root / "runs", root / "corpus", {"partition": sink}), sink


Walked = tuple[Path, dict[str, RunOutcome], RecordingSink]


def test_every_row_of_the_corpus_is_accounted_for(walked: Walked) -> None:
    """144 good rows, a torn line and a row without text: nothing is dropped in silence."""
    root, outcomes, _ = walked
    counters = outcomes["partition"].counters
    assert (counters.rows_in, counters.rows_out, counters.filtered, counters.rejected) == (146, 144, 0, 2)
    assert table(root, "partition", "rows").num_rows == 144
    quarantine = root / "partition" / "walk.partition.quarantine.jsonl"
    bad = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert [(Path(each["source"]).name, each["line"]) for each in bad] == [
        ("part-1.jsonl.gz", 3),
        ("part-1.jsonl.gz", 50),
    ]
    assert bad[0]["raw"] == '{"id": "torn", "year": 19'
    assert bad[1]["reason"] == "text is null"


def test_the_events_tell_the_life_of_the_run(walked: Walked) -> None:
    """Start, a unit at a time, the metrics settled once, the end."""
    _, outcomes, sink = walked
    events = [each for each in sink.events if type(each).__name__ != "ResourcesSampled"]
    assert [type(each) for each in events] == [
        RunStarted,
        PhaseStarted,
        UnitDone,
        UnitDone,
        UnitDone,
        PhaseEnded,
        MetricsFinalized,
        RunEnded,
    ]
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.outcome, ended.error) == ("finished", None)
    metrics = outcomes["partition"].metrics
    assert metrics is not None
    assert metrics.counters["rows_in"] == ended.counters["rows_in"] == 146
    assert set(metrics.stage_seconds) == {"read", "process", "write"}
    done = [each for each in events if isinstance(each, UnitDone)]
    assert sum(each.counters["rows_in"] for each in done) == 146


def test_mapping_and_sums_agree_with_a_plain_count(walked: Walked) -> None:
    """The whole path against a dozen lines of Python."""
    root, outcomes, _ = walked
    rows = table(root, "partition", "rows").to_pylist()
    counts: dict[str, int] = {}
    years: dict[int, int] = {}
    for row in rows:
        years[row["year"]] = years.get(row["year"], 0) + len(row["tokens"])
        for token in row["tokens"]:
            counts[token] = counts.get(token, 0) + 1
    expected = sorted((-count, term) for term, count in counts.items() if count >= 3)
    mapping = table(root, "mapping", "mapping")
    assert list(zip(mapping["count"].to_pylist(), mapping["term"].to_pylist(), strict=True)) == [
        (-count, term) for count, term in expected
    ]
    assert mapping["term_id"].to_pylist() == list(range(len(expected)))
    assert outcomes["mapping"].counters.extra["terms"] == len(expected)
    sums = table(root, "reduce", "sums", "jsonl").to_pylist()
    assert sums == [{"group": year, "count": years[year]} for year in sorted(years)]


def test_the_two_subjects_fall_into_two_clusters(walked: Walked) -> None:
    """Vectors that were trained, averaged and clustered must know the sea from the field."""
    root, outcomes, _ = walked
    rows = table(root, "embed", "rows")
    assert rows.num_rows == 144
    vectors = np.array(rows["vector"].to_pylist())
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assignments = table(root, "cluster", "assignments").to_pylist()
    tokens = table(root, "partition", "rows").to_pylist()
    at_sea = [bool({"ship", "sea"} & set(row["tokens"])) for row in tokens]
    agree = np.mean([row["cluster"] == int(sea) for row, sea in zip(assignments, at_sea, strict=True)])
    assert max(agree, 1 - agree) > 0.95
    centroids = table(root, "cluster", "centroids").to_pylist()
    sizes = [sum(row["cluster"] == each["cluster"] for row in assignments) for each in centroids]
    assert [each["size"] for each in centroids] == sizes
    assert outcomes["cluster"].counters.extra["converged"] == 1


def test_the_manifests_of_the_outputs_speak_of_the_files(walked: Walked) -> None:
    """Later steps and people trust these numbers."""
    root, outcomes, _ = walked
    for step, outcome in outcomes.items():
        for name, output in outcome.outputs.items():
            assert read_output_manifest(root / step / name).to_json() == output.to_json()
            assert output.rows == table(root, step, name, output.backend).num_rows


def test_a_second_walk_gives_the_same_bytes(walked: Walked, tmp_path: Path) -> None:
    """Identity of artifacts rests on it: same inputs, same files, whatever the folder and the run id."""
    root, _, _ = walked
    walk(tmp_path / "runs", root.parent / "corpus", {})
    one, other = (
        {name: content for name, content in files_below(each).items() if "account" not in name}
        for each in (root, tmp_path / "runs")
    )  # an account names the folders that were read
    assert one == other
