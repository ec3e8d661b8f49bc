"""A model with the resources it owns: one forward pass over a batch of rows, by the runner's cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.generation import Generation, Row
from treadle.engine.models.llama import Llama
from treadle.engine.resources.attention import Attention, AttentionPlan
from treadle.engine.resources.kv_cache import KvClaim, KvPlan, KvShape, PagedKvCache
from treadle.engine.resources.positions import Positions, Rotation
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.sampler import SamplePlan, Sampler, Sampling
from treadle.engine.resources.step import ResourceStep, Segment, SubmoduleStep

KV, POSITIONS, ATTENTION, SAMPLER = "kv", "positions", "attention", "sampler"
LANGUAGE_MODEL = "language_model"


@dataclass(frozen=True)
class Node:
    """A named unit of model compute, its cache, and the runner that drives its resources."""

    model: Llama
    cache: PagedKvCache
    runner: StepRunner
    name: str = LANGUAGE_MODEL

    def can_open(self, generation: Generation) -> bool:
        """Whether the request can be carried to its end beside those that are open."""
        return self.cache.can_promise(generation.stored_at_end)

    def open(self, generation: Generation) -> None:
        """Open a request on all resources; only after `can_open`."""
        request = generation.request
        claims = {
            KV: KvClaim(generation.stored_at_end),
            SAMPLER: Sampling(request.temperature, request.seed),
        }
        self.runner.ingest_request(generation.rid, claims)

    def close(self, generation: Generation) -> None:
        """Take back all that the request holds."""
        self.runner.remove_request(generation.rid)

    def declare(self, rows: Sequence[Row]) -> SubmoduleStep:
        """What each resource has to do for these rows; the sampler only for those that need a token."""
        segments = tuple(Segment(row.generation.rid, row.span) for row in rows)
        sampled = tuple(segment for segment, row in zip(segments, rows, strict=True) if row.samples)
        steps = {key: ResourceStep() for key in self.runner.keys_of(self.name) if key != SAMPLER}
        if sampled:
            steps[SAMPLER] = ResourceStep(sampled)
        return SubmoduleStep(steps, segments)

    def forward(self, step: SubmoduleStep, rows: Sequence[Row]) -> Tensor:
        """Float32 (sampled rows, vocabulary) of a planned step; fills the planned slots of the cache."""
        kv = step.ctx.result(KV, KvPlan)
        attention = step.ctx.result(ATTENTION, AttentionPlan)

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            self.cache.write(layer, keys, values, kv)
            return attention.attend(queries, *self.cache.layer(layer))

        tokens = torch.tensor([token for row in rows for token in row.tokens], dtype=torch.int64)
        hidden = self.model.hidden(tokens, step.ctx.result(POSITIONS, Rotation).turn, attend)
        return self.model.scores(hidden[_last_of_sampled(rows)])

    def sample(self, step: SubmoduleStep, scores: Tensor) -> tuple[int | None, ...]:
        """A token for each sampled row, None where the scores are not numbers."""
        return step.ctx.result(SAMPLER, SamplePlan).sample(scores)


def build_node(model: Llama, *, pages: int, page_size: int) -> Node:
    """A node whose cache holds `pages` pages of `page_size` tokens, all allocated here."""
    config = model.config
    cache = PagedKvCache(KvShape(config.layers, config.kv_heads, config.head_width), pages, page_size)
    resources: dict[str, Resource] = {
        KV: cache,
        # What the cache cannot hold is never asked for; a file may state a context of billions.
        POSITIONS: Positions(
            min(config.context, pages * page_size), config.head_width, config.rope_base, kv=KV
        ),
        ATTENTION: Attention(config.kv_heads, config.head_width, kv=KV),
        SAMPLER: Sampler(),
    }
    return Node(model, cache, StepRunner(resources, {LANGUAGE_MODEL: tuple(resources)}))


def _last_of_sampled(rows: Sequence[Row]) -> list[int]:
    ends, total = [], 0
    for row in rows:
        total += row.span
        if row.samples:
            ends.append(total - 1)
    return ends
