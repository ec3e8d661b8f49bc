"""Steps in which every request decodes, in buckets: so many rows, filled up by padding rows.

There are as many shapes as buckets times widths of the page table, so each can be captured once and
replayed, whoever the rows are. One set of buffers is enough: a step that is planned ahead is put there when
its turn comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from treadle.engine.captured_pass import CapturedPass
from treadle.engine.forward import KV, SAMPLER
from treadle.engine.generation import Row, context_of
from treadle.engine.replay import Capture, Replay, call_again, cuda_graph
from treadle.engine.resources.kv_plan import DecodeRows
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import ResourceStep, Segment, SubmoduleStep
from treadle.errors import ArgumentError

_SLOT = 0


class CapturedSteps:
    """The captured steps of one node; made, it opens the padding rows and has the static buffers built.

    Args:
        runner: drives the node's resources.
        node_name: the node.
        compute: what is captured.
        buckets: how many rows a step may have, padding rows included.
        longest: the most tokens that a request may store.

    Raises:
        ArgumentError: no bucket, or one without a row.
    """

    def __init__(
        self, runner: StepRunner, node_name: str, compute: CapturedPass, buckets: Sequence[int], longest: int
    ) -> None:
        if not buckets or min(buckets) < 1:
            raise ArgumentError(f"buckets are numbers of rows, each at least 1, got {list(buckets)}")
        self._compute = compute
        self._buckets = sorted(set(buckets))
        most = self._buckets[-1]
        self._padding = tuple(f"padding {at}" for at in range(most - 1))
        for rid in self._padding:
            runner.ingest_capture_row(rid)
        runner.build_accelerator_graph_buffers(1, most, longest, node_name)
        self._tokens = torch.zeros(most, dtype=torch.int64)
        self._capture: Capture = cuda_graph if compute.cache.store.numbers.is_cuda else call_again
        self._replays: dict[DecodeRows, Replay] = {}

    @property
    def shapes(self) -> frozenset[tuple[int, int]]:
        """(rows, pages a row) of what was captured so far."""
        return frozenset((rows.table.shape[0], rows.table.shape[1]) for rows in self._replays)

    def declare(self, rows: Sequence[Row]) -> SubmoduleStep | None:
        """A step of these rows in the smallest bucket that takes them; None when a row does not decode.

        Positions and masks are made inside of what is captured: only the cache and the sampler have a part.
        """
        bucket = next((size for size in self._buckets if size >= len(rows)), None)
        if bucket is None or not rows or any(row.span > 1 or not row.samples for row in rows):
            return None
        padding = self._padding[: bucket - len(rows)]
        decoding = tuple(Segment(row.generation.rid, 1) for row in rows)
        steps = {KV: ResourceStep(), SAMPLER: ResourceStep(decoding)}
        segments = (*decoding, *(Segment(rid, 0) for rid in padding))
        return SubmoduleStep(steps, segments, context_of(rows, padding=padding, slot=_SLOT))

    def forward(self, step: SubmoduleStep, rows: Sequence[Row]) -> Tensor:
        """Float32 (rows, vocabulary) of a planned step that was declared here, without the padding rows.

        The result may be the memory of the next one too.
        """
        planned = step.ctx.result(KV, DecodeRows)
        tokens = self._tokens[: len(planned.slots)]
        decoded = [row.generation.tokens[row.start] for row in rows]
        tokens.copy_(torch.tensor([*decoded, *[0] * (len(tokens) - len(rows))]))
        if planned not in self._replays:
            self._replays[planned] = self._capture(partial(self._compute, tokens, planned))
        return self._replays[planned]()[: len(rows)]
