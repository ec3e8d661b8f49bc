"""The structures of the C++ sources, field for field."""

from __future__ import annotations

from ctypes import Structure, c_float, c_int32, c_int64, c_void_p


class Matrix(Structure):
    """See matmul.h."""

    _fields_ = [
        ("data", c_void_p),
        ("scales", c_void_p),
        ("offsets", c_void_p),
        ("bias", c_void_p),
        ("outputs", c_int32),
        ("columns", c_int32),
    ]


class Layer(Structure):
    """See llama.cpp."""

    _fields_ = [
        ("attention_norm", c_void_p),
        ("feed_forward_norm", c_void_p),
        ("qkv", Matrix),
        ("output", Matrix),
        ("gate_up", Matrix),
        ("down", Matrix),
    ]


class Model(Structure):
    """See llama.cpp."""

    _fields_ = [
        ("layers", c_void_p),
        ("embedding", c_void_p),
        ("norm", c_void_p),
        ("head", Matrix),
        ("depth", c_int32),
        ("width", c_int32),
        ("feed_forward", c_int32),
        ("query_heads", c_int32),
        ("key_heads", c_int32),
        ("head_width", c_int32),
        ("epsilon", c_float),
    ]


class Cache(Structure):
    """See llama.cpp."""

    _fields_ = [
        ("data", c_void_p),
        ("layer_bytes", c_int64),
        ("half_bytes", c_int64),
        ("head_bytes", c_int64),
        ("page_bytes", c_int64),
    ]


class Rows(Structure):
    """See attention.h."""

    _fields_ = [
        ("first", c_void_p),
        ("span", c_void_p),
        ("start", c_void_p),
        ("pages", c_void_p),
        ("row_pages", c_int64),
        ("count", c_int32),
    ]


class Batch(Structure):
    """See llama.cpp."""

    _fields_ = [
        ("tokens", c_void_p),
        ("slots", c_void_p),
        ("sampled", c_void_p),
        ("cos", c_void_p),
        ("sin", c_void_p),
        ("rows", Rows),
        ("count", c_int32),
        ("sampled_count", c_int32),
    ]
