"""What a file may hold that was not written by a model's authors, and how loading must answer."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from hypothesis import strategies as st

from treadle.engine.encoder import Encoder
from treadle.engine.engine import Engine
from treadle.engine.requests import GenerationRequest, Message
from treadle.errors import ArgumentError, ArtifactError, UnknownNameError, UsageError

_ROOM = 2**31

EDGES = (
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    255,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**53,
    2**63 - 1,
    2**63,
    2**64 - 1,
)

plain = (
    st.none()
    | st.booleans()
    | st.sampled_from([-1, *EDGES, -(2**63)])
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["", "\0", "<s>", "$A", "(", "llama", "x" * 5000, "../../etc/passwd"])
)
anything = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@contextmanager
def little_memory() -> Iterator[None]:
    """Room for what a toy takes and not for what a damaged length asks for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + _ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def talks(path: Path) -> Callable[[], None]:
    """A language model, loaded as small as can be; then two requests, which end, whatever it is."""
    engine = Engine.load(str(path), kernels="torch", cache_tokens=64, max_batch=2)

    def answer() -> None:
        asked = ("the inn 北", (Message("user", "the"),))
        done = engine.generate(GenerationRequest(str(prompt), prompt, 2) for prompt in asked)
        assert {each.finish_reason for each in done} <= {"length", "stop", "error"}

    return answer


def embeds(path: Path) -> Callable[[], None]:
    """An encoder; then two texts, of which its tokenizer may refuse one."""
    encoder = Encoder.load(str(path))

    def answer() -> None:
        with suppress(ArgumentError):
            encoder.embed(["the gold", ""])

    return answer


def loads_or_says_why(path: Path, load: Callable[[Path], Callable[[], None]] = talks) -> bool:
    """Whether it is still a model, which then answers; else its error names the file or what is known."""
    loaded: list[Callable[[], None]] = []
    with little_memory():
        said = refusal(lambda: loaded.append(load(path)))
        for answer in loaded:
            answer()
    assert not said or str(path) in said or "known: " in said, said
    return not said


def refusal(act: Callable[[], object]) -> str:
    """What is said when it may not be; empty when it may. Any other error is a crash."""
    try:
        act()
    except (ArtifactError, UnknownNameError, UsageError) as error:
        return str(error)
    return ""
