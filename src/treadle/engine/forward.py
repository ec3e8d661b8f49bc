"""One forward pass of a planned step: by torch, layer by layer, or by one call of compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from treadle.engine.models.architectures import LanguageModel
from treadle.engine.models.llama import Llama
from treadle.engine.models.native_llama import PAGE_SIZE, NativeBatch, NativeLlama
from treadle.engine.resources.attention import Attention, AttentionPlan
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import KvPlan
from treadle.engine.resources.paged_attention import PagedAttention, PagedRows
from treadle.engine.resources.positions import Rotation
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.step import StepContext
from treadle.errors import ArgumentError

KV, POSITIONS, ATTENTION, SAMPLER = "kv", "positions", "attention", "sampler"
"""Keys of the resources that a language model owns."""


class ForwardPass(Protocol):
    """What a node computes a step with."""

    def make_attention(self) -> Resource:
        """The resource that plans under the key `ATTENTION` what this pass reads."""

    def __call__(self, tokens: Tensor, sampled: Sequence[int], ctx: StepContext) -> Tensor:
        """Float32 (sampled, vocabulary) of int64 (tokens,); fills the planned slots of the cache.

        `sampled` are the places of the tokens after which a score is wanted. The result may be the memory of
        the next one too.
        """


def forward_pass(model: LanguageModel, cache: PagedKvCache) -> ForwardPass:
    """The pass of a model over its cache.

    Raises:
        ArgumentError: compiled code and pages of another size than it reads.
    """
    if isinstance(model, Llama):
        return EagerPass(model, cache)
    if cache.ledger.page_size != PAGE_SIZE:
        raise ArgumentError(
            f"compiled kernels read pages of {PAGE_SIZE} tokens, got {cache.ledger.page_size}"
        )
    return NativePass(model, cache)


@dataclass(frozen=True)
class EagerPass:
    """By torch."""

    model: Llama
    cache: PagedKvCache

    def make_attention(self) -> Attention:
        """See `ForwardPass`."""
        config = self.model.config
        return Attention(config.kv_heads, config.head_width, kv=KV, dtype=self.cache.store.dtype)

    def __call__(self, tokens: Tensor, sampled: Sequence[int], ctx: StepContext) -> Tensor:
        """See `ForwardPass`."""
        kv, attention = ctx.result(KV, KvPlan), ctx.result(ATTENTION, AttentionPlan)

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            self.cache.write(layer, keys, values, kv)
            return attention.attend(queries, *self.cache.layer(layer))

        hidden = self.model.hidden(tokens, ctx.result(POSITIONS, Rotation).turn, attend)
        return self.model.scores(hidden[list(sampled)])


@dataclass(frozen=True)
class NativePass:
    """By compiled code."""

    model: NativeLlama
    cache: PagedKvCache

    def make_attention(self) -> PagedAttention:
        """See `ForwardPass`."""
        return PagedAttention(kv=KV)

    def __call__(self, tokens: Tensor, sampled: Sequence[int], ctx: StepContext) -> Tensor:
        """See `ForwardPass`."""
        rotation = ctx.result(POSITIONS, Rotation)
        batch = NativeBatch(
            tokens=tokens,
            slots=ctx.result(KV, KvPlan).slots,
            cos=rotation.cos,
            sin=rotation.sin,
            rows=ctx.result(ATTENTION, PagedRows),
            sampled=torch.tensor(sampled, dtype=torch.int64),
        )
        return self.model.forward(batch, self.cache.store.numbers)
