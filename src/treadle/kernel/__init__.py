"""What the three scales share: order, outcome, unwinding, ambient values, registries."""

from treadle.kernel.ambient import Ambient, carry
from treadle.kernel.order import Frontier, arrange
from treadle.kernel.outcome import Cached, Done, Failed, Outcome, Skipped
from treadle.kernel.registry import Registry
from treadle.kernel.unwind import Unwind, add_note

__all__ = [
    "Ambient",
    "Cached",
    "Done",
    "Failed",
    "Frontier",
    "Outcome",
    "Registry",
    "Skipped",
    "Unwind",
    "add_note",
    "arrange",
    "carry",
]
