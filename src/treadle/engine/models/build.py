"""How a model is built from its weights: in which precision, and by which code it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch

from treadle.errors import UnknownNameError

Precision = Literal["float32", "bfloat16", "int8"]
Kernels = Literal["auto", "torch", "native"]


@dataclass(frozen=True)
class Build:
    """What a caller of `Engine.load` chooses.

    Attributes:
        precision: of weights, of the inputs of products, and of stored keys and values. float32 is exact;
            bfloat16 keeps 8 bits of each number; int8 is an approximation, with keys and values in bfloat16.
        kernels: `torch` runs everywhere, `native` is compiled on this machine and faster, `auto` takes the
            native ones where they can be had.

    Raises:
        UnknownNameError: neither of the names.
    """

    precision: Precision = "float32"
    kernels: Kernels = "auto"

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise UnknownNameError("precision", self.precision, get_args(Precision))
        if self.kernels not in get_args(Kernels):
            raise UnknownNameError("kernels", self.kernels, get_args(Kernels))


def stored_type(precision: Precision) -> torch.dtype:
    """The type of stored keys, values and embeddings."""
    return torch.float32 if precision == "float32" else torch.bfloat16
