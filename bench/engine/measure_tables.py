"""The tables of treadle's own parts, as data."""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.kept import Piece
from bench.engine.tables import NOTHING, Score
from bench.table import Table

_PRECISIONS = {"float32": "float32", "bf16": "bfloat16", "int8": "int8"}


def runner_table(pieces: Sequence[Piece]) -> Table:
    """What a step takes outside the forward pass."""
    rows = [
        (
            each.name,
            f"{each.median('step') / 1e3:.1f}",
            f"{each.median('pass_share'):.1%}",
            f"{each.median('own'):,.0f}",
            f"{each.median('own_share'):.2%}",
            f"{each.median('snapshot'):,.0f}",
            f"{each.median('snapshot_share'):.2%}",
            f"{each.median('sample_share'):.2%}",
            f"{each.median('rest_share'):.2%}",
            f"{each.median('ahead'):,.0f}",
        )
        for each in pieces
        if each.lines
    ]
    head = (
        "treadle",
        "step, ms",
        "forward pass",
        "admit + plan + commit, µs",
        "of the step",
        "snapshots, µs",
        "of the step",
        "sampling",
        "all the rest",
        "on the planner's thread, µs",
    )
    about = (
        "A step in which 16 requests decode one token each, from the end of one forward pass to the end of "
        "the next; medians over the steps of one run. Snapshots are those of `publish_snapshot` for the 16, "
        "taken after each step on top of it. All the rest is the scheduler, what declares the step, the "
        "prefix index, the growing texts, streaming and the benchmark's own clock. What is planned ahead "
        "runs while the pass computes."
    )
    return Table("The runner's own work", about, head, rows, _notes(pieces))


def products_table(pieces: Sequence[Piece], many: Sequence[Score]) -> Table:
    """How near the engine comes to the bound."""
    speeds = {each.contender.precision: each.speed for each in many if each.contender.is_default}
    rows = [_bound(each, speeds.get(_PRECISIONS[each.name])) for each in pieces if each.lines]
    about = (
        "What the case of many requests would take if there were nothing but the products with the weights, "
        "by oneDNN with weights laid out once, 64 rows in a step that decodes and 512 in one that reads "
        "prompts; in int8 with one scale for a whole matrix of inputs."
    )
    head = ("", "products alone, tokens/s", "treadle, tokens/s", "treadle ÷ products")
    return Table("The bound", about, head, rows, _notes(pieces))


def accuracy_table(pieces: Sequence[Piece]) -> Table:
    """Divergence and perplexity."""
    lines = [line for each in pieces for line in each.lines]
    rows = [
        (
            str(line["row"]),
            NOTHING if line["same"] == 1 and not line["divergence"] else _small(line["divergence"]),
            f"{line['perplexity']:.3f}",
            f"{line['same']:.2%}",
        )
        for line in lines
    ]
    count = max((line["tokens"] for line in lines), default=0)
    about = (
        f"{count:,} tokens of English in windows of 512, each predicted from those before it. The divergence "
        "(Kullback and Leibler, nats a token, mean) and the share of tokens with the same likeliest next "
        "one are those to transformers in float32."
    )
    head = ("", "divergence", "perplexity", "same likeliest token")
    return Table("How near to the reference", about, head, rows, _notes(pieces))


def _bound(piece: Piece, speed: float | None) -> tuple[str, ...]:
    bound = piece.median("tokens")
    ours = (NOTHING, NOTHING) if speed is None else (f"{speed:,.0f}", f"{speed / bound:.2f}")
    return piece.name, f"{bound:,.0f}", *ours


def _small(value: float) -> str:
    return "below 0.000001" if abs(value) < 1e-6 else f"{value:.6f}"


def _notes(pieces: Sequence[Piece]) -> list[str]:
    return [f"{each.name}: {each.problem}." for each in pieces if each.problem]
