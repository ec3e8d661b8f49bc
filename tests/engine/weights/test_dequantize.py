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


def kinds(*, unpacked: bool) -> list[Kind]:
    """Those that the library can unpack, or those of which it knows the size only."""

    def known(kind: Kind) -> bool:
        try:
            reference(random_bytes(kind, 256).numpy(), kind)
        except NotImplementedError:
            return False
        return True

    return [kind for kind in gguf.GGML_QUANT_SIZES if known(kind) == unpacked]


@pytest.mark.parametrize("kind", kinds(unpacked=True), ids=lambda kind: kind.name)
def test_every_kind_has_the_numbers_of_the_reference(kind: Kind) -> None:
    """To the last bit, over more blocks than are unpacked at once."""
    numbers = BLOCKS * gguf.GGML_QUANT_SIZES[kind][0]
    data = random_bytes(kind, numbers)
    assert len(data) == bytes_of(kind, numbers)
    found = dequantize(data, kind, numbers).numpy()
    assert found.dtype == np.float32
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, reference(data.numpy(), kind).reshape(-1))


def test_the_kinds_that_files_have_are_among_them() -> None:
    """What llama.cpp's `quantize` writes, besides the plain ones."""
    plain, simple = {"F32", "F16", "BF16"}, {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"}
    nested, by_table = {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"}, {"IQ2_XS", "IQ3_S", "IQ4_NL", "IQ4_XS"}
    assert plain | simple | nested | by_table <= {kind.name for kind in kinds(unpacked=True)}


def test_any_bytes_are_numbers(recwarn: pytest.WarningsRecorder) -> None:
    """Damaged scales are infinite or none, which is no reason for a warning."""
    for kind in kinds(unpacked=True):
        assert len(dequantize(torch.full((bytes_of(kind, 512),), 255, dtype=torch.uint8), kind, 512)) == 512
    assert not recwarn.list


def test_numbers_of_half_a_block_are_refused() -> None:
    """A damaged shape would read the scales of one block as the numbers of another."""
    with pytest.raises(ValueError, match="40 numbers are no whole blocks of 32"):
        bytes_of(Kind.Q4_1, 40)


@pytest.mark.parametrize(
    "kind", [kind for kind in kinds(unpacked=False) if kind != Kind.F64], ids=lambda kind: kind.name
)
def test_a_kind_without_a_reference_is_named(kind: Kind) -> None:
    """The library knows the sizes of more kinds than it can unpack."""
    with pytest.raises(ValueError, match=f"{kind.name} is not known here"):
        dequantize(random_bytes(kind, 256), kind, 256)


def test_doubles_become_floats() -> None:
    """The library has no numbers for them, which are plain enough."""
    data = torch.tensor([0.1, -2.0], dtype=torch.float64)
    assert dequantize(data.view(torch.uint8), Kind.F64, 2).tolist() == data.float().tolist()
