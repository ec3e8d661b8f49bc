"""treadle: one manifest, as a user would write it."""

from __future__ import annotations

from pathlib import Path

from bench.data.contender import BATCHES, KEYS, ROWS, SKEWED
from bench.data.corpus import Corpus

_COUNT = """
run: {{type: reduce}}
inputs:
  rows: {{backend: parquet, path: "{parquet}/*.parquet"}}
reduce: {{keys: [{key}], aggregates: {{rows: {{function: count}}}}}}
outputs:
  sums: {{backend: parquet, path: "{out}"}}
"""

_BODIES = {
    ROWS: """
run: {{type: transform}}
inputs:
  documents: {{backend: jsonl, path: "{jsonl}/*.jsonl"}}
transforms:
  - {{name: map, entry: "bench.data.rows:clean"}}
  - {{name: filter, entry: "bench.data.rows:is_kept"}}
outputs:
  rows: {{backend: jsonl, path: "{out}"}}
""",
    BATCHES: """
run: {{type: transform}}
inputs:
  documents: {{backend: parquet, path: "{parquet}/*.parquet"}}
transforms:
  - {{name: map_batches, entry: "bench.data.tools.arrow_batches:clean"}}
outputs:
  rows: {{backend: parquet, path: "{out}", compression: zstd}}
""",
    KEYS: _COUNT,
    SKEWED: _COUNT,
}


def run(case: str, corpus: Corpus, out: Path, parallelism: str = "") -> None:
    from treadle.processing import RunContext, run_from_manifest

    key = "key" if case == KEYS else "topic"
    body = _BODIES[case].format(jsonl=corpus.jsonl, parquet=corpus.parquet, key=key, out=out)
    manifest = out.with_name("manifest.yaml")
    manifest.write_text(f"drtml_version: 4\nstep_id: bench\n{body}parallelism: {{{parallelism}}}\n")
    run_from_manifest(manifest, RunContext.create("bench", out.with_name("run")))
