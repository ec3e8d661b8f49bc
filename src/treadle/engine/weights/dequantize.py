"""Stored numbers of GGUF tensors as float32.

The common kinds are unpacked by torch, straight into the tensor that is returned: on one core that took
a ninth of the time of `gguf.quants`, with the same numbers to the last bit. The rest are left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import gguf
import numpy as np
import torch
from gguf.quants import dequantize as dequantize_slowly
from torch import Tensor

Kind = gguf.GGMLQuantizationType

# Bytes of a block are read as (blocks, bytes), its numbers are written as (blocks, numbers).
Unpack = Callable[[Tensor, Tensor], None]

# So many blocks at a time stay in the processor's cache between the passes over them.
_AT_ONCE = 8192

_PLAIN = {
    Kind.F32: torch.float32,
    Kind.F16: torch.float16,
    Kind.BF16: torch.bfloat16,
    Kind.F64: torch.float64,
}


def bytes_of(kind: int, numbers: int) -> int:
    """How many bytes so many numbers take.

    Raises:
        ValueError: the kind is not known, or they are no whole number of blocks.
    """
    per_block, block_bytes = gguf.GGML_QUANT_SIZES[Kind(kind)]
    if numbers % per_block:
        raise ValueError(f"{numbers} numbers are no whole blocks of {per_block}")
    return int(numbers // per_block * block_bytes)


def dequantize(data: Tensor, kind: int, numbers: int) -> Tensor:
    """Float32 (numbers,) of the bytes (uint8) that `bytes_of` says; of a float32 tensor, those very bytes.

    Raises:
        ValueError: the kind is not known, or cannot be unpacked.
    """
    known = Kind(kind)
    if dtype := _PLAIN.get(known):
        return data.view(dtype).float()
    per_block, block_bytes = gguf.GGML_QUANT_SIZES[known]
    blocks, out = data.view(-1, block_bytes), torch.empty(numbers // per_block, per_block)
    unpack = _BLOCKS.get(known, partial(_rarely, known))
    for begin in range(0, len(blocks), _AT_ONCE):
        unpack(blocks[begin : begin + _AT_ONCE], out[begin : begin + _AT_ONCE])
    return out.view(-1)


def _rarely(kind: Kind, blocks: Tensor, out: Tensor) -> None:
    try:
        with np.errstate(all="ignore"):  # damaged blocks are numbers too, and no reason to warn
            # As one row: the library goes through rows a few at a time.
            out.copy_(torch.from_numpy(dequantize_slowly(blocks.reshape(-1).numpy(), kind)).view(out.shape))
    except NotImplementedError as error:
        raise ValueError(f"{kind.name} is not known here") from error


def _halves(blocks: Tensor) -> Tensor:
    """Float16 numbers at the front of each block, as float32."""
    return blocks.contiguous().view(torch.float16).float()


def _q8_0(blocks: Tensor, out: Tensor) -> None:
    out.copy_(blocks[:, 2:].view(torch.int8)).mul_(_halves(blocks[:, :2]))


def _nibbles(packed: Tensor, out: Tensor) -> None:
    out[:, :16] = packed & 15
    out[:, 16:] = packed >> 4


def _q4_0(blocks: Tensor, out: Tensor) -> None:
    _nibbles(blocks[:, 2:], out)
    out.sub_(8).mul_(_halves(blocks[:, :2]))


def _q4_1(blocks: Tensor, out: Tensor) -> None:
    _nibbles(blocks[:, 4:], out)
    factors = _halves(blocks[:, :4])
    out.mul_(factors[:, :1]).add_(factors[:, 1:])


_BLOCKS: Mapping[Kind, Unpack] = {Kind.Q8_0: _q8_0, Kind.Q4_0: _q4_0, Kind.Q4_1: _q4_1}
