"""How a pass over static buffers is run again and again: by calling it, or by what was captured of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Replay = Callable[[], Tensor]
"""A pass over its static buffers, whose result may be the memory of the next one too."""

Capture = Callable[[Replay], Replay]
"""Makes a replay of a pass, once for each shape."""


def call_again(run: Replay) -> Replay:
    """Where nothing is captured, as on a CPU: the call itself is the replay."""
    return run


def cuda_graph(run: Replay) -> Replay:
    """The pass as a CUDA graph.

    Not tried on a GPU yet: no part of the engine moves a model to one, and this project's tests have none.
    They check the order of the calls.
    """
    # What torch makes at first use, such as room for cuBLAS, must not be made inside a capture. One run more
    # changes nothing: it puts the same numbers into the same places.
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        run()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scores = run()

    def replay() -> Tensor:
        graph.replay()
        return scores

    return replay
