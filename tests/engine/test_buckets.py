"""Steps of decoding requests in buckets: few shapes, the same answers, and padding that nobody notices."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tests.engine.kernels.passes import config, weights
from tests.engine.toys import assert_same, completions
from treadle.engine.captured_pass import CapturedPass
from treadle.engine.engine import Engine
from treadle.engine.forward import ATTENTION, KV, POSITIONS
from treadle.engine.generation import Generation, Row
from treadle.engine.intake import Intake
from treadle.engine.kernels.library import shared_library
from treadle.engine.models.build import Precision
from treadle.engine.models.native_llama import NativeLlama
from treadle.engine.node import Node, build_node
from treadle.engine.replay import cuda_graph
from treadle.engine.requests import Completion, GenerationRequest
from treadle.engine.resources.kv_plan import DecodeRows
from treadle.engine.resources.step import ResourceStep, Segment, SubmoduleStep
from treadle.engine.scheduler import Preemption
from treadle.errors import ArgumentError

PAGE = 16
BUCKETS = (1, 2, 4, 8, 16)
WIDTHS = (1, 2, 4, 6)  # pages of a text of up to 96 tokens


class Parts(NamedTuple):
    """What an engine is built of, in a precision."""

    loaded: Engine

    def engine(
        self,
        buckets: Sequence[int],
        *,
        seats: int = 17,
        pages: int = 120,
        budget: int = 256,
        preemption: Preemption = "never",
        prefix_cache: bool = False,
        plan_ahead: bool = False,
    ) -> Engine:
        node = build_node(
            self.loaded.node.model,
            pages=pages,
            page_size=PAGE,
            buckets=buckets,
            prefix_cache=prefix_cache,
            host_pages=pages if preemption == "offload" else 0,
        )
        return Engine(
            node,
            self.loaded.tokenizer,
            max_batch=seats,
            token_budget=budget,
            preemption=preemption,
            plan_ahead=plan_ahead,
        )


@pytest.fixture(scope="module")
def parts(toy_path: Path) -> Parts:
    return Parts(Engine.load(str(toy_path), max_batch=1, cache_tokens=PAGE, kernels="torch"))


def requests_of(count: int) -> list[GenerationRequest]:
    """Prompts of 3 to 47 tokens and answers of 4 to 40, so that they end and join at any moment."""
    return [
        GenerationRequest(
            f"r{at}",
            tuple((7 * at + 13 * place * place + place) % 250 + 3 for place in range(3 + at * 11 % 45)),
            4 + at * 17 % 37,
            ignore_eos=True,
            temperature=0.8 * (at % 3 == 2),
            seed=at,
            logprobs=1,
        )
        for at in range(count)
    ]


def said(engine: Engine, requests: Sequence[GenerationRequest]) -> dict[str, Completion]:
    found = completions(engine, requests)
    assert {each.error for each in found.values()} == {None}
    return found


@pytest.fixture(scope="module")
def plain(parts: Parts) -> dict[str, Completion]:
    """What the requests are answered without buckets."""
    return said(parts.engine(()), requests_of(40))


def first(plain: dict[str, Completion], count: int) -> dict[str, Completion]:
    return {f"r{at}": plain[f"r{at}"] for at in range(count)}


@pytest.mark.parametrize("count", range(1, 18))
def test_buckets_change_no_answer(parts: Parts, plain: dict[str, Completion], count: int) -> None:
    """For as many requests as fill a bucket, for one more, and for one more than the largest has rows."""
    engine = parts.engine(BUCKETS)
    assert_same(said(engine, requests_of(count)), first(plain, count))
    assert engine.node.captured is not None
    assert engine.node.captured.shapes


@pytest.mark.parametrize("plan_ahead", [False, True])
@pytest.mark.parametrize("preemption", ["never", "recompute", "offload"])
def test_buckets_change_no_answer_when_requests_wait_make_room_and_share(
    parts: Parts, plain: dict[str, Completion], preemption: Preemption, plan_ahead: bool
) -> None:
    """Many requests through five seats and too few pages; twice, so that the second time much is cached."""
    engine = parts.engine(
        BUCKETS,
        seats=5,
        pages=12,
        budget=24,
        preemption=preemption,
        prefix_cache=True,
        plan_ahead=plan_ahead,
    )
    for _ in range(2):
        assert_same(said(engine, requests_of(16)), first(plain, 16))


def test_one_request_can_have_the_whole_pool(parts: Parts) -> None:
    """Padding rows have a place that was never in it."""
    engine, bare = (parts.engine(buckets, pages=2) for buckets in (BUCKETS[2:], ()))
    request = GenerationRequest("a", (5, 6, 7), 2 * PAGE - 3 + 1, ignore_eos=True)
    got, expected = said(engine, [request]), said(bare, [request])
    assert len(got["a"].token_ids) == 2 * PAGE - 2
    assert_same(got, expected)


@contextmanager
def watched(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[CapturedPass], None] = lambda _: None
) -> Iterator[list[tuple[Tensor, DecodeRows, Tensor]]]:
    """Tokens, rows and a copy of the scores of each captured pass."""
    passes: list[tuple[Tensor, DecodeRows, Tensor]] = []
    compute = CapturedPass.__call__

    def noting(captured: CapturedPass, tokens: Tensor, rows: DecodeRows) -> Tensor:
        before(captured)
        scores = compute(captured, tokens, rows)
        passes.append((tokens, rows, scores.clone()))
        return scores

    with monkeypatch.context() as patch:
        patch.setattr(CapturedPass, "__call__", noting)
        yield passes


def test_there_are_as_many_shapes_as_buckets_times_widths(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would be captured once; in a day of work there may be no other."""
    engine = parts.engine(BUCKETS)
    with watched(monkeypatch) as passes:
        said(engine, requests_of(40))
    shapes = {tuple(rows.table.shape) for _, rows, _ in passes}
    assert engine.node.captured is not None
    assert engine.node.captured.shapes == shapes
    assert shapes <= {(rows, width) for rows in BUCKETS for width in WIDTHS}
    assert len(passes) > 4 * len(shapes)
    assert {rows for rows, _ in shapes} >= {1, 8, 16}


def test_the_static_buffers_stay_where_they_are(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay reads the addresses of its capture, whatever happened since."""
    engine = parts.engine(BUCKETS, plan_ahead=True)
    with watched(monkeypatch) as passes:
        said(engine, requests_of(20))
        said(engine, requests_of(9))
    addresses = {
        tuple(each.data_ptr() for each in (tokens, rows.slots, rows.starts, rows.table))
        for tokens, rows, _ in passes
    }
    assert len(addresses) == 1


def test_nothing_of_a_padding_row_reaches_a_real_one(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a bit of it: with zeros in the sink page, with a large number, and with what is no number."""

    def filled(value: float) -> list[Tensor]:
        def fill(captured: CapturedPass) -> None:
            store = captured.cache.store
            store.numbers[:, :, :, store.pages] = value

        with watched(monkeypatch, fill) as passes:
            said(parts.engine((5, 16)), requests_of(12))
        return [scores[rows.slots < 120 * PAGE] for _, rows, scores in passes]

    zero, large, none = (filled(value) for value in (0.0, 1e30, float("nan")))
    assert len(zero) == len(large) == len(none)
    for one, two, three in zip(zero, large, none, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)
        assert one.isfinite().all()


def test_only_steps_in_which_every_row_decodes_are_captured(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt among them, or more rows than the largest bucket has, and the step runs as it always did."""
    steps: list[tuple[bool, int, bool]] = []
    forward = Node.forward

    def noting(node: Node, step: SubmoduleStep, rows: Sequence[Row]) -> Tensor:
        decoding = all(row.span == 1 and row.samples for row in rows)
        steps.append((decoding, len(rows), step.ctx.slot is not None))
        scores = forward(node, step, rows)
        assert len(scores) == sum(row.samples for row in rows)
        return scores

    monkeypatch.setattr(Node, "forward", noting)
    said(parts.engine((2, 4)), requests_of(9))
    assert {(decoding, captured) for decoding, _, captured in steps} == {
        (False, False),
        (True, False),
        (True, True),
    }
    assert all(captured == (decoding and rows <= 4) for decoding, rows, captured in steps)


def test_a_captured_pass_that_fails_takes_its_rows_down_and_no_others(
    parts: Parts, plain: dict[str, Completion], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padding rows live on; nothing of the failed step stays, neither in the pool nor among the prefixes."""
    engine = parts.engine(BUCKETS, prefix_cache=True)

    def fail(_: CapturedPass) -> None:
        raise RuntimeError("out of luck")

    with watched(monkeypatch, fail):
        broken = list(engine.generate(requests_of(3)))
    assert {(each.finish_reason, each.error) for each in broken} == {
        ("error", "the forward pass failed: out of luck")
    }
    assert_same(said(engine, requests_of(5)), first(plain, 5))


@pytest.mark.parametrize(("precision", "close"), [("float32", 1e-5), ("bfloat16", 0.1), ("int8", 0.1)])
def test_a_captured_step_scores_as_a_plain_one(toy_path: Path, precision: Precision, close: float) -> None:
    """In each precision that torch computes, for rows of unlike lengths."""
    loaded = Engine.load(str(toy_path), max_batch=1, cache_tokens=PAGE, precision=precision, kernels="torch")
    node = build_node(loaded.node.model, pages=40, page_size=PAGE, buckets=(8,))
    rows = [_opened(loaded, node, at, 3 + 14 * at) for at in range(6)]
    captured = node.declare(rows)
    real = tuple(Segment(row.generation.rid, 1) for row in rows)
    plain = SubmoduleStep({key: ResourceStep() for key in (KV, POSITIONS, ATTENTION)}, real)
    assert node.runner.admit(plain).ok
    node.runner.plan(plain)
    node.runner.plan(captured)
    with torch.inference_mode():
        expected = node.forward(plain, rows).clone()
        got = node.forward(captured, rows)
    torch.testing.assert_close(got, expected, atol=close, rtol=close)


def _opened(loaded: Engine, node: Node, at: int, length: int) -> Row:
    """A request all of whose tokens but the last are computed, and its row."""
    prompt = tuple((7 * at + place * place) % 250 + 3 for place in range(length))
    generation = Intake(loaded.tokenizer, 96, 40 * PAGE).take(GenerationRequest(f"r{at}", prompt, 8), at)
    assert isinstance(generation, Generation)
    node.open(generation, length)
    row = Row(generation, 0, length - 1, samples=False)
    step = node.declare([row])
    assert node.runner.admit(step).ok
    node.runner.plan(step)
    with torch.inference_mode():
        node.forward(step, [row])
    node.runner.commit(step)
    return Row(generation, length - 1, 1, samples=True)


@pytest.mark.parametrize("buckets", [(0,), (4, -1)])
def test_a_bucket_without_a_row_is_refused(parts: Parts, buckets: tuple[int, ...]) -> None:
    """It is somebody's mistake, and no step would ever use it."""
    with pytest.raises(ArgumentError, match=r"each at least 1, got \["):
        parts.engine(buckets)


def test_the_smallest_bucket_that_takes_the_rows_is_used(parts: Parts) -> None:
    """However they are named."""
    node = build_node(parts.loaded.node.model, pages=40, page_size=PAGE, buckets=(4, 2, 4))
    rows = [_opened(parts.loaded, node, at, 3) for at in range(5)]
    steps = [node.declare(rows[:count]) for count in range(1, 6)]
    assert [len(step.segments) for step in steps] == [2, 2, 4, 4, 5]
    assert [len(step.ctx.padding_ids) for step in steps] == [1, 0, 1, 0, 0]
    assert [step.ctx.slot for step in steps] == [0, 0, 0, 0, None]


def test_an_engine_is_loaded_with_buckets(toy_path: Path, plain: dict[str, Completion]) -> None:
    """Which its node then uses."""
    engine = Engine.load(str(toy_path), max_batch=3, cache_tokens=288, kernels="torch", buckets=(3,))
    assert_same(said(engine, requests_of(7)), first(plain, 7))
    assert engine.node.captured is not None
    assert engine.node.captured.shapes <= {(3, width) for width in WIDTHS}


def test_compiled_kernels_need_no_buckets() -> None:
    """They would be padded for nothing; the error says what to do instead."""
    model = NativeLlama(config(), weights(), shared_library())
    with pytest.raises(ArgumentError, match=r"without buckets, or with kernels='torch'"):
        build_node(model, pages=4, page_size=PAGE, buckets=BUCKETS)


class Cuda:
    """What `torch.cuda` has for a capture, noting what is asked of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def Stream(self) -> "Queue":  # noqa: N802 - as torch names it
        return Queue("aside", self.calls)

    def current_stream(self) -> "Queue":
        return Queue("main", self.calls)

    def CUDAGraph(self) -> "Cuda":  # noqa: N802 - as torch names it
        return self

    def replay(self) -> None:
        self.calls.append("replay")

    @contextmanager
    def stream(self, stream: "Queue") -> Iterator[None]:
        self.calls.append(f"on {stream.name}")
        yield

    @contextmanager
    def graph(self, _: object) -> Iterator[None]:
        self.calls.append("capture")
        yield
        self.calls.append("captured")


class Queue(NamedTuple):
    """A queue of work by name."""

    name: str
    calls: list[str]

    def wait_stream(self, other: "Queue") -> None:
        self.calls.append(f"{self.name} waits for {other.name}")


def test_a_cuda_graph_is_captured_once_after_a_run_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch asks for it; whether a GPU agrees is not known here, where there is none."""
    cuda, scores = Cuda(), torch.zeros(1)
    monkeypatch.setattr(torch, "cuda", cuda)

    def run() -> Tensor:
        cuda.calls.append("run")
        return scores

    again = cuda_graph(run)
    assert cuda.calls == [
        "aside waits for main",
        "on aside",
        "run",
        "main waits for aside",
        "capture",
        "run",
        "captured",
    ]
    assert again() is again() is scores
    assert cuda.calls[7:] == ["replay", "replay"]
