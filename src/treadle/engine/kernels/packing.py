"""Lays weights out for the compiled product: see matmul.h."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from treadle.engine.kernels.structures import Matrix
from treadle.engine.models.build import Precision
from treadle.engine.models.linear import GROUP, quantised

LANES = 16


@dataclass(frozen=True)
class Packed:
    """A weight (outputs, columns) in panels, and what goes with it; keeps the memory alive.

    Attributes:
        data: int32 (panels, steps, 16 outputs), each the one, two or four numbers of a step.
        scales: int8: float32 (panels * 16,), of each output.
        offsets: int8: int32 (panels, groups, 16), minus what the 128 adds that every input carries.
        bias: float32 (panels * 16,).
        outputs: how many are real.
        columns: of the weight.
    """

    data: Tensor
    scales: Tensor | None
    offsets: Tensor | None
    bias: Tensor | None
    outputs: int
    columns: int

    def structure(self) -> Matrix:
        """As the library reads it."""
        tensors = (self.data, self.scales, self.offsets, self.bias)
        addresses = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
        return Matrix(*addresses, self.outputs, self.columns)


def pack(weight: Tensor, precision: Precision, bias: Tensor | None = None) -> Packed:
    """Pack a weight, float32 (outputs, columns); the columns must be a multiple of 16."""
    outputs, columns = weight.shape
    padding = -outputs % (2 * LANES)  # panels go in pairs
    weight = pad(weight, (0, 0, 0, padding))
    bias = None if bias is None else pad(bias, (0, padding)).contiguous()
    if precision != "int8":
        numbers = weight.to(torch.float32 if precision == "float32" else torch.bfloat16)
        return Packed(_panels(numbers), None, None, bias, outputs, columns)
    scales, numbers = quantised(weight)
    return Packed(_panels(numbers), scales, _offsets(numbers), bias, outputs, columns)


def beside(gate: Tensor, up: Tensor) -> Tensor:
    """Two weights of one shape as one, a panel of the first, a panel of the second, and so on."""
    pairs = torch.stack((gate.view(-1, LANES, gate.shape[1]), up.view(-1, LANES, up.shape[1])), dim=1)
    return pairs.view(-1, gate.shape[1])


def _panels(numbers: Tensor) -> Tensor:
    words = numbers.view(torch.int32)  # the numbers of a step stay together
    outputs, steps = words.shape
    return words.view(outputs // LANES, LANES, steps).transpose(1, 2).contiguous()


def _offsets(numbers: Tensor) -> Tensor:
    outputs, columns = numbers.shape
    padded = pad(numbers, (0, -columns % GROUP)).view(outputs, -1, GROUP)
    sums = padded.sum(dim=-1, dtype=torch.int32).view(outputs // LANES, LANES, -1)
    return (-128 * sums).transpose(1, 2).contiguous()
