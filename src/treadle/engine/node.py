"""A model with the resources it owns: one forward pass over a batch of rows, by the runner's cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.captured_pass import CapturedPass
from treadle.engine.captured_steps import CapturedSteps
from treadle.engine.forward import ATTENTION, KV, POSITIONS, SAMPLER, ForwardPass, forward_pass
from treadle.engine.generation import PREFILL, Generation, Row, context_of
from treadle.engine.models.architectures import LanguageModel
from treadle.engine.models.build import stored_type
from treadle.engine.models.llama import Llama
from treadle.engine.models.native_llama import NativeLlama
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_step import KvClaim
from treadle.engine.resources.positions import Positions
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.sampler import SamplePlan, Sampler
from treadle.engine.resources.sampling import Pick, Sampling
from treadle.engine.resources.step import ResourceStep, Segment, SubmoduleStep
from treadle.engine.room import shape_of
from treadle.errors import ArgumentError

LANGUAGE_MODEL = "language_model"


@dataclass(frozen=True)
class Node:
    """A named unit of model compute, its cache, and the runner that drives its resources."""

    model: LanguageModel
    cache: PagedKvCache
    runner: StepRunner
    compute: ForwardPass
    name: str = LANGUAGE_MODEL
    captured: CapturedSteps | None = None

    def can_open(self, tokens: int) -> bool:
        """Whether a request of so many tokens can be carried to its end beside those that are open."""
        return self.cache.can_promise(tokens)

    def open(self, generation: Generation, tokens: int) -> None:
        """Open a request on all resources, with room for so many tokens; only after `can_open`.

        What is cached of its text counts as computed.
        """
        rid, text = generation.rid, generation.tokens
        claims = {KV: KvClaim(tokens), SAMPLER: _sampling(generation)}
        self.runner.ingest_request(rid, claims)
        prefix = self.runner.resolve_cached_prefix(rid, self.name, PREFILL, text)
        if prefix is not None:
            self.runner.apply_cached_prefix(rid, self.name, PREFILL, text, prefix)
        generation.computed = prefix.length if prefix else 0

    def close(self, generation: Generation) -> None:
        """Take back all that the request holds."""
        self.runner.remove_request(generation.rid)

    def distrust(self, rows: Sequence[Row]) -> None:
        """The step of these rows failed, maybe after it was committed: what it left is nobody's prefix."""
        for row in rows:
            self.cache.distrust(row.generation.rid, row.start)

    def extend(self, rows: Sequence[Row], picks: Sequence[Pick | None]) -> None:
        """What was picked for the rows that sample is part of their text, which others may begin with."""
        keys = self.runner.prefix_chain_keys(self.name)
        sampled = [row.generation.rid for row in rows if row.samples]
        new = {rid: [pick.token] for rid, pick in zip(sampled, picks, strict=True) if pick is not None}
        if keys and new:
            walks = {row.generation.rid: row.walk for row in rows}
            self.runner.extend_prefix_chains_batch(list(new), self.name, walks, list(new.values()), new, keys)

    def declare(self, rows: Sequence[Row]) -> SubmoduleStep:
        """What each resource has to do for these rows; the sampler only for those that need a token."""
        if self.captured and (captured := self.captured.declare(rows)):
            return captured
        segments = tuple(Segment(row.generation.rid, row.span) for row in rows)
        sampled = tuple(segment for segment, row in zip(segments, rows, strict=True) if row.samples)
        steps = {key: ResourceStep() for key in self.runner.keys_of(self.name) if key != SAMPLER}
        if sampled:
            steps[SAMPLER] = ResourceStep(sampled)
        return SubmoduleStep(steps, segments, context_of(rows))

    def forward(self, step: SubmoduleStep, rows: Sequence[Row]) -> Tensor:
        """Float32 (sampled rows, vocabulary) of a planned step; fills the planned slots of the cache."""
        if self.captured and step.ctx.slot is not None:
            return self.captured.forward(step, rows)
        tokens = torch.tensor([token for row in rows for token in row.tokens], dtype=torch.int64)
        return self.compute(tokens, _last_of_sampled(rows), step.ctx)

    def sample(self, step: SubmoduleStep, scores: Tensor) -> tuple[Pick | None, ...]:
        """A token for each sampled row, None where the scores are not numbers."""
        return step.ctx.result(SAMPLER, SamplePlan).sample(scores)


def build_node(
    model: LanguageModel,
    *,
    pages: int,
    page_size: int,
    prefix_cache: bool = False,
    host_pages: int = 0,
    buckets: Sequence[int] = (),
) -> Node:
    """A node whose cache holds `pages` pages of `page_size` tokens, all allocated here.

    Args:
        model: what it computes.
        pages: how many.
        page_size: tokens of a page.
        prefix_cache: keep what was computed for requests that begin alike.
        host_pages: room for pages of requests that make room for others.
        buckets: sizes of batches up to which padding rows fill a step in which every request decodes; none
            for a step of more rows than the largest.

    Raises:
        ArgumentError: a bucket without a row, or buckets for compiled kernels.
    """
    config = model.config
    cache = _cache(model, pages, page_size, prefix_cache=prefix_cache, host_pages=host_pages)
    compute = forward_pass(model, cache)
    # What the cache cannot hold is never asked for; a file may state a context of billions.
    longest = min(config.context, pages * page_size)
    positions = Positions(longest, config.head_width, config.rope_base, kv=KV, factors=config.rope_factors)
    resources: dict[str, Resource] = {
        KV: cache,
        POSITIONS: positions,
        ATTENTION: compute.make_attention(),
        SAMPLER: Sampler(),
    }
    runner = StepRunner(resources, {LANGUAGE_MODEL: tuple(resources)})
    if not buckets:
        return Node(model, cache, runner, compute)
    captured_pass = CapturedPass(_by_torch(model), cache, positions)
    captured = CapturedSteps(runner, LANGUAGE_MODEL, captured_pass, buckets, longest)
    return Node(model, cache, runner, compute, captured=captured)


def _cache(
    model: LanguageModel, pages: int, page_size: int, *, prefix_cache: bool, host_pages: int
) -> PagedKvCache:
    return PagedKvCache(
        shape_of(model),
        pages,
        page_size,
        dtype=stored_type(model.precision),
        prefix_cache=prefix_cache,
        host_pages=host_pages,
        layout="native" if isinstance(model, NativeLlama) else "torch",
    )


def _by_torch(model: LanguageModel) -> Llama:
    if not isinstance(model, Llama):
        raise ArgumentError(
            "buckets give the pass by torch a fixed shape; compiled kernels take any step as it is: "
            "load without buckets, or with kernels='torch'"
        )
    return model


def _last_of_sampled(rows: Sequence[Row]) -> list[int]:
    ends, total = [], 0
    for row in rows:
        total += row.span
        if row.samples:
            ends.append(total - 1)
    return ends


def _sampling(generation: Generation) -> Sampling:
    request = generation.request
    return Sampling(
        temperature=request.temperature,
        seed=request.seed,
        top_k=request.top_k,
        top_p=request.top_p,
        min_p=request.min_p,
        repetition_penalty=request.repetition_penalty,
        logprobs=request.logprobs,
        past=tuple(generation.tokens) if request.repetition_penalty != 1 else (),
        picked=len(generation.new_tokens),
    )
