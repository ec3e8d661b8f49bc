"""Stored numbers against those of the library that defines them."""

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import dequantize as reference

from treadle.engine.weights.dequantize import bytes_of, dequantize

Kind = gguf.GGMLQuantizationType
BLOCKS = 10_000


def random_bytes(kind: Kind, numbers: int) -> torch.Tensor:
    """Any bytes are numbers of any kind; whose scales are small, so that none overflows."""
    draw = np.random.default_rng(int(kind))
    per_block, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = draw.integers(0, 256, (numbers // per_block, size), np.uint8)
    blocks[:, 1::2] &= 0xBF  # no exponent of all ones, in float16 or above: neither infinite nor NaN
    return torch.from_numpy(blocks.reshape(-1))


@pytest.mark.parametrize(
    "kind", [Kind.F32, Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_1, Kind.Q4_K, Kind.Q6_K]
)
def test_every_kind_has_the_numbers_of_the_reference(kind: Kind) -> None:
    """To the last bit, over more blocks than are unpacked at once; the rare kinds go through the library."""
    numbers = BLOCKS * gguf.GGML_QUANT_SIZES[kind][0] if kind.name.startswith("Q") else BLOCKS
    data = random_bytes(kind, numbers)
    assert len(data) == bytes_of(kind, numbers)
    found = dequantize(data, kind, numbers).numpy()
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, reference(data.numpy(), kind).reshape(-1))


def test_numbers_of_half_a_block_are_refused() -> None:
    """A damaged shape would read the scales of one block as the numbers of another."""
    with pytest.raises(ValueError, match="40 numbers are no whole blocks of 32"):
        bytes_of(Kind.Q4_1, 40)


def test_a_kind_without_a_reference_is_named() -> None:
    """The library knows the sizes of more kinds than it can unpack."""
    kind = Kind.Q8_K
    with pytest.raises(ValueError, match="Q8_K is not known here"):
        dequantize(random_bytes(kind, 256), kind, 256)
