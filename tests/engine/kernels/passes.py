"""Runs steps through a model of random weights, by torch or by compiled code."""

from collections.abc import Sequence

import torch
from torch import Tensor

from treadle.engine.forward import ATTENTION, KV, POSITIONS
from treadle.engine.models.architectures import LanguageModel
from treadle.engine.models.llama import LlamaConfig, Load
from treadle.engine.node import build_node
from treadle.engine.resources.step import ResourceStep, Segment, SubmoduleStep

# Steps of (request, span) each.
Steps = Sequence[Sequence[tuple[int, int]]]


def config(**other: int | float | bool) -> LlamaConfig:
    """Small sizes, with every proportion of a real model different from 1."""
    sizes: dict[str, int | float | bool] = {
        "layers": 2,
        "width": 80,
        "heads": 6,
        "kv_heads": 2,
        "head_width": 16,
        "feed_forward": 112,
        "vocabulary": 67,
        "context": 512,
        "rope_base": 100.0,
        "norm_epsilon": 1e-5,
        "tied": True,
    }
    return LlamaConfig(**{**sizes, **other})  # type: ignore[arg-type]


def weights(seed: int = 0) -> Load:
    """The same tensor for the same name, always."""
    made: dict[str, Tensor] = {}

    def load(name: str, shape: tuple[int, ...]) -> Tensor:
        if name not in made:
            chance = torch.Generator().manual_seed(seed + sum(name.encode()))
            drawn = torch.randn(shape, generator=chance)
            made[name] = drawn * 0.2 if len(shape) > 1 else 1 + drawn * 0.1
        assert made[name].shape == shape
        return made[name]

    return load


def tokens_of(request: int, count: int, vocabulary: int) -> list[int]:
    """The first tokens of a request's text."""
    return [(7 + 31 * request + 13 * at * at + at) % vocabulary for at in range(count)]


def run(
    model: LanguageModel, steps: Steps, text: Sequence[int] | None = None
) -> dict[tuple[int, int], Tensor]:
    """(request, place) -> its scores, after all steps; every page is free again.

    Requests have texts of their own, unless one is given for all.
    """
    node = build_node(model, pages=64, page_size=16)
    requests = sorted({request for step in steps for request, _ in step})
    for request in requests:
        node.runner.ingest_request(str(request))
    done = dict.fromkeys(requests, 0)
    found: dict[tuple[int, int], Tensor] = {}
    with torch.inference_mode():
        for each in steps:
            places = [(rid, at) for rid, span in each for at in range(done[rid], done[rid] + span)]
            texts = {rid: text or tokens_of(rid, 512, model.config.vocabulary) for rid, _ in each}
            step = SubmoduleStep(
                {key: ResourceStep() for key in (KV, POSITIONS, ATTENTION)},
                tuple(Segment(str(rid), span) for rid, span in each),
            )
            assert node.runner.admit(step).ok
            node.runner.plan(step)
            ids = torch.tensor([texts[rid][at] for rid, at in places], dtype=torch.int64)
            scores = node.compute(ids, range(len(places)), step.ctx)
            found |= dict(zip(places, scores.clone(), strict=True))
            node.runner.commit(step)
            for rid, span in each:
                done[rid] += span
    for request in requests:
        node.runner.remove_request(str(request))
    node.runner.check_integrity()
    return found
