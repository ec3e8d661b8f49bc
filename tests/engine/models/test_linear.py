"""The packed product against the plain one."""

import pytest
import torch

from treadle.engine.models.build import Precision
from treadle.engine.models.linear import make_linear


@pytest.mark.parametrize("rows", [0, 1, 3, 16, 70])
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_packed_equals_plain(rows: int, precision: Precision) -> None:
    """Packing is a layout: the same product, for any number of rows."""
    weight, vectors, bias = torch.rand(40, 24) - 0.5, torch.rand(rows, 24) - 0.5, torch.rand(40)
    with torch.inference_mode():
        packed, plain = (
            make_linear(weight, bias, precision=precision, packed=packed)(vectors) for packed in (True, False)
        )
    # oneDNN and the plain product round the same sums to bfloat16, made in another order.
    tolerance = 2.0**-8 if precision == "bfloat16" else 1e-5
    torch.testing.assert_close(packed, plain, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("bfloat16", 0.02), ("int8", 0.03)])
def test_the_product_is_the_product_within_the_precision(precision: Precision, tolerance: float) -> None:
    """Sums of 130 numbers, which fill two groups of columns and begin a third."""
    weight, vectors, bias = torch.randn(40, 130), torch.randn(5, 130), torch.randn(40)
    expected = vectors @ weight.T + bias
    got = make_linear(weight, bias, precision=precision)(vectors)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, expected, rtol=0, atol=tolerance * float(expected.abs().max()))


def test_what_cannot_be_packed_takes_the_plain_path() -> None:
    """Another type or device must work without anybody choosing."""
    weight = torch.rand(4, 3, dtype=torch.float64)
    vectors = torch.rand(2, 3, dtype=torch.float64)
    torch.testing.assert_close(make_linear(weight)(vectors), vectors @ weight.T)
