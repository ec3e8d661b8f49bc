"""`x @ weight.T`, with the weight laid out once for the processor it runs on: the path without a compiler.

On a CPU with oneDNN a weight is packed when it is loaded. On one Zen 4 core that made a layer 1.7 times
faster than `torch.nn.functional.linear` at 16 rows and 1.2 times at 256, and the output matrix 2.4 times
at 16. Anything else, or `packed=False`, is the plain function: the reference.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from treadle.engine.models.build import Precision

Linear = Callable[[Tensor], Tensor]

GROUP = 64
"""Columns that share one scale where inputs are rounded to int8."""

# The layout is chosen for this many rows and right for any number; 64 was best from 1 to 512.
_TYPICAL_ROWS = 64


def make_linear(
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    precision: Precision = "float32",
    packed: bool = True,
) -> Linear:
    """The function (rows, columns) -> (rows, outputs), float32 both, for a weight and a bias (outputs,).

    Args:
        weight: float32 (outputs, columns).
        bias: of each output, added in float32.
        precision: what the weight and the rows are rounded to. int8 says what the native kernels compute,
            to the last bits; it is no faster here than float32.
        packed: whether oneDNN may lay the weight out.
    """
    if precision == "int8":
        scales, numbers = quantised(weight)
        multiply = make_linear(numbers.float() * scales[:, None], bias, packed=packed)
        return lambda rows: multiply(_rounded(rows))
    if precision == "bfloat16":
        multiply = _multiplier(weight.bfloat16(), packed)
        return lambda rows: _plus(multiply(rows.bfloat16()).float(), bias)
    multiply = _multiplier(weight, packed)
    return lambda rows: _plus(multiply(rows), bias)


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A scale for each output, float32 (outputs,), and the weight in int8 (outputs, columns)."""
    scales = weight.abs().amax(dim=1) / 127
    steps = weight / scales.clamp_min(torch.finfo(torch.float32).tiny)[:, None]
    return scales, steps.round_().to(torch.int8)


def _rounded(rows: Tensor) -> Tensor:
    """Rows in steps of a 127th of the largest number of each group of columns."""
    columns = rows.shape[1]
    groups = pad(rows, (0, -columns % GROUP)).view(len(rows), -(-columns // GROUP), GROUP)
    steps = groups.abs().amax(dim=-1, keepdim=True) / 127
    whole = (groups / steps.clamp_min(torch.finfo(torch.float32).tiny)).round_()
    return (whole * steps).flatten(1)[:, :columns]


def _plus(products: Tensor, bias: Tensor | None) -> Tensor:
    return products if bias is None else products + bias


def _multiplier(weight: Tensor, packed: bool) -> Linear:
    if packed and _can_pack(weight):
        return _packed(weight)
    return lambda rows: linear(rows, weight)


def _can_pack(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.bfloat16):
        return False
    # Both are private to torch, and missing from builds without oneDNN.
    return all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))


def _packed(weight: Tensor) -> Linear:
    layout = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _TYPICAL_ROWS)
    multiply = torch.ops.mkldnn._linear_pointwise.default

    def apply(rows: Tensor) -> Tensor:
        return multiply(rows, layout, None, "none", [], "")  # type: ignore[no-any-return]

    return apply
