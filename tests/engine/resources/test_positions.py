"""Rotations: what they preserve, and from where they count."""

import torch

from treadle.engine.resources.kv_plan import KvPlan, KvRow
from treadle.engine.resources.positions import Positions, Rotation
from treadle.engine.resources.step import ResourceStep, StepContext


def rotation(*rows: tuple[int, int]) -> Rotation:
    plan = KvPlan(torch.zeros(0, dtype=torch.int64), tuple(KvRow(start, span, ()) for start, span in rows), 4)
    return Positions(context=64, width=8, base=100.0).plan(ResourceStep(()), StepContext({"kv": plan}))


def test_position_zero_does_not_turn() -> None:
    """Angles grow from nothing at the first token."""
    vectors = torch.rand(1, 2, 8)
    torch.testing.assert_close(rotation((0, 1)).turn(vectors), vectors)


def test_turning_keeps_lengths() -> None:
    """A rotation that stretches would change what attention weighs."""
    vectors = torch.rand(5, 2, 8)
    torch.testing.assert_close(rotation((7, 5)).turn(vectors).norm(dim=-1), vectors.norm(dim=-1))


def test_only_the_distance_matters() -> None:
    """The product of a query and a key depends on how far apart they stand: the point of the method."""
    query, key = torch.rand(1, 1, 8), torch.rand(1, 1, 8)

    def product(at: int, before: int) -> torch.Tensor:
        return (rotation((at, 1)).turn(query) * rotation((at - before, 1)).turn(key)).sum()

    torch.testing.assert_close(product(9, 4), product(50, 4))


def test_a_chunk_counts_on_from_what_is_stored() -> None:
    """Cut prompts and decoding rows stand where they would stand uncut."""
    whole, cut = rotation((0, 9)), rotation((6, 3))
    assert torch.equal(whole.cos[6:], cut.cos)
    assert torch.equal(whole.sin[6:], cut.sin)
    mixed = rotation((8, 1), (0, 2))
    assert torch.equal(mixed.cos, torch.cat((whole.cos[8:], whole.cos[:2])))
