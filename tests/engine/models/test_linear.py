"""The packed product against the plain one."""

import pytest
import torch

from treadle.engine.models.linear import make_linear


@pytest.mark.parametrize("rows", [1, 3, 16, 70])
def test_packed_equals_plain(rows: int) -> None:
    """Packing is a layout: the same product, for any number of rows."""
    weight, vectors = torch.rand(40, 24) - 0.5, torch.rand(rows, 24) - 0.5
    with torch.inference_mode():
        packed, plain = make_linear(weight)(vectors), make_linear(weight, packed=False)(vectors)
    torch.testing.assert_close(packed, plain, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(plain, vectors @ weight.T)


def test_what_cannot_be_packed_takes_the_plain_path() -> None:
    """Another type or device must work without anybody choosing."""
    weight = torch.rand(4, 3, dtype=torch.float64)
    vectors = torch.rand(2, 3, dtype=torch.float64)
    torch.testing.assert_close(make_linear(weight)(vectors), vectors @ weight.T)
