"""Which steps are being built around the code that runs here.

A step that runs itself, directly or through a run inside a run, would wait for its own lease for ever.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

from treadle.errors import StepError
from treadle.execution.step_spec import StepSpec


def check_outside(step: StepSpec) -> None:
    """See that the body of the step is not around the caller.

    Raises:
        StepError: it is.
    """
    if any(body.runs and body.output_path == step.output_path for body in _AROUND.get()):
        raise StepError(
            f"step {step.id} is run from inside itself, and would wait for itself for ever; "
            "take it out of what its function runs"
        )


class inside:  # noqa: N801 - read as a word: `with inside(step):`
    """The block is the body of the step.

    A class and no generator: `contextmanager` cannot pass on an exception that is frozen.
    """

    __slots__ = ("_token", "output_path", "runs")

    def __init__(self, step: StepSpec) -> None:
        self.output_path = step.output_path
        self.runs = False

    def __enter__(self) -> None:
        self.runs = True
        self._token: Token[tuple[inside, ...]] = _AROUND.set((*_AROUND.get(), self))

    def __exit__(self, *_: object) -> None:
        self.runs = False  # a copy of the context may live on, in a thread that the body has started
        _AROUND.reset(self._token)


_AROUND: ContextVar[tuple[inside, ...]] = ContextVar("treadle bodies around", default=())
