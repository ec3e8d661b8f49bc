"""The engine on a toy model: how requests end, and how one that fails leaves the others alone."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from treadle.engine.engine import Engine
from treadle.engine.loop import Loop
from treadle.engine.models.llama import Llama
from treadle.engine.requests import Completion, Delta, GenerationRequest, Message
from treadle.engine.resources.kv_step import KvClaim
from treadle.engine.resources.step import ResourceStep, StepContext
from treadle.errors import ArgumentError, EngineError


def by_torch(engine: Engine) -> Llama:
    """Its model, whose parts a test can make fail."""
    assert isinstance(engine.node.model, Llama)
    return engine.node.model


def ask(
    rid: str, prompt: str | tuple[Message, ...] | tuple[int, ...] = "the inn", new: int = 5, **options: object
) -> GenerationRequest:
    return GenerationRequest(rid, prompt, new, **{"ignore_eos": True, **options})  # type: ignore[arg-type]


def finish(engine: Engine, *requests: GenerationRequest) -> dict[str, Completion]:
    return {completion.id: completion for completion in engine.generate(requests)}


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (ask("bad", ""), "the prompt is empty"),
        (ask("bad", ()), "the prompt is empty"),
        (ask("bad", "x" * 96), "has 96 tokens, the model's context 96"),
        (ask("bad", (5, 99999)), "unknown token id 99999: ids run from 0 to 262"),
        (ask("bad", (5, -1)), "unknown token id -1"),
        (ask("bad", ({"role": "user", "content": "x"},)), "give Message records, got {'role': "),  # type: ignore[arg-type]
        (ask("bad", stop_tokens=(3, 99999)), "unknown token id 99999"),
        (ask("bad", (5, "x")), "unknown token id 'x'"),  # type: ignore[arg-type]
        (ask("bad", "ab\ud800"), "no valid Unicode at character 2"),
        (ask("bad", (Message("tool", "x"),)), "no tools"),
        (ask("bad", (Message("user", "\udfff"),)), "no valid Unicode"),
        (ask("bad", None), "a text, messages or token ids, got a NoneType"),  # type: ignore[arg-type]
        (ask("bad", b"ab"), "a text, messages or token ids, got a bytes"),  # type: ignore[arg-type]
        (ask("bad", (Message("user", "x"), 5)), "give Message records, got 5"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_request_ends_with_a_reason_and_the_others_go_on(
    toy_engine: Engine, request_: GenerationRequest, said: str
) -> None:
    """One bad row of a million must cost one row."""
    alone = finish(toy_engine, ask("good"))["good"]
    found = finish(toy_engine, ask("good"), request_, ask("also"))
    assert found["bad"].finish_reason == "error"
    assert said in str(found["bad"].error)
    assert found["bad"].token_ids == ()
    assert found["good"] == alone
    assert found["also"].token_ids == alone.token_ids


def test_what_never_fits_the_pool_is_refused_with_what_to_do(toy_path: Path) -> None:
    """Waiting for room that never comes would block everybody behind."""
    engine = Engine.load(str(toy_path), max_batch=2, token_budget=16, cache_tokens=32)
    found = finish(engine, ask("big", "x" * 30, 4), ask("small", "x" * 30, 3))
    assert "need room for 33 tokens, the cache has 32" in str(found["big"].error)
    assert "cache_tokens" in str(found["big"].error)
    assert len(found["small"].token_ids) == 3


def test_the_context_ends_a_text(toy_engine: Engine) -> None:
    """A prompt that fits is answered as far as the context goes, not refused for asking too much."""
    completion = finish(toy_engine, ask("a", "x" * 90, 50))["a"]
    assert (completion.finish_reason, len(completion.token_ids)) == ("length", 6)


def test_the_end_token_ends_a_text_unless_ignored(toy_engine: Engine) -> None:
    """The token is among the ids, as in the reference, and not in the text."""
    whole = finish(toy_engine, ask("a", new=8))["a"]
    toy_engine.tokenizer.ends = frozenset([whole.token_ids[3]])
    first = whole.token_ids.index(whole.token_ids[3])
    cut = finish(toy_engine, ask("a", new=8, ignore_eos=False))["a"]
    assert cut.finish_reason == "stop"
    assert cut.token_ids == whole.token_ids[: first + 1]
    assert finish(toy_engine, ask("a", new=8))["a"] == whole


def test_a_stop_string_cuts_the_text(toy_engine: Engine) -> None:
    """It may run over several tokens, and nothing of it is left in the text."""
    whole = finish(toy_engine, ask("a", new=8))["a"].text
    stop = whole[2:5]
    cut = finish(toy_engine, ask("a", new=8, stop=("never there", stop)))["a"]
    assert (cut.text, cut.finish_reason) == (whole[: whole.index(stop)], "stop")
    assert len(cut.token_ids) < 8


def test_a_stop_token_ends_the_text_as_the_end_token_does(toy_engine: Engine) -> None:
    """Chat models end a turn by tokens of their own."""
    whole = finish(toy_engine, ask("a", new=8))["a"]
    cut = finish(toy_engine, ask("a", new=8, stop_tokens=(whole.token_ids[2],)))["a"]
    first = whole.token_ids.index(whole.token_ids[2])
    assert (cut.token_ids, cut.finish_reason) == (whole.token_ids[: first + 1], "stop")


def test_streamed_parts_make_up_the_completion(toy_engine: Engine) -> None:
    """Whoever shows the parts shows the same text in the end, among others as well as alone."""
    requests = [ask(str(at), "the inn " * (1 + at % 3), 9, stop=("he",)) for at in range(7)]
    expected = finish(toy_engine, *requests)
    parts: dict[str, list[Delta]] = {each.id: [] for each in requests}
    for told in toy_engine.stream(requests):
        if isinstance(told, Delta):
            parts[told.id].append(told)
        else:
            assert told == expected.pop(told.id)
            assert "".join(part.text for part in parts[told.id]) == told.text
            assert tuple(token for part in parts[told.id] for token in part.token_ids) == told.token_ids
    assert not expected


def test_an_aborted_request_ends_with_what_it_has_and_the_others_go_on(toy_engine: Engine) -> None:
    """A client that went away must not be computed for; whoever waits behind gets its room."""
    expected = finish(toy_engine, ask("b", new=12))["b"]
    ended: dict[str, Completion] = {}
    seen = 0
    for told in toy_engine.stream([ask("a", new=60), ask("b", new=12), *(ask(f"w{at}") for at in range(9))]):
        if isinstance(told, Completion):
            ended[told.id] = told
        elif told.id == "a" and (seen := seen + 1) == 3:
            toy_engine.abort("a")
            toy_engine.abort("w8")  # not drawn yet: it will run
            toy_engine.abort("nobody")
    assert (ended["a"].finish_reason, len(ended["a"].token_ids)) == ("abort", 3)
    assert ended["b"] == expected
    assert ended["w8"].finish_reason == "length"
    assert len(ended) == 11
    toy_engine.node.runner.check_integrity()
    assert toy_engine.node.cache.ledger.available == toy_engine.node.cache.ledger.total


def test_a_stop_that_never_comes_ends_at_the_limit(toy_engine: Engine) -> None:
    """A condition is no promise."""
    completion = finish(toy_engine, ask("a", new=8, stop=("never there",)))["a"]
    assert (completion.finish_reason, len(completion.token_ids)) == ("length", 8)


def test_the_same_id_twice_gives_two_completions(toy_engine: Engine) -> None:
    """Ids belong to the caller: rows of a table may share them, and must not share a cache."""
    found = list(toy_engine.generate([ask("a", "in"), ask("a", "the other")]))
    assert [completion.id for completion in found] == ["a", "a"]
    assert {completion.prompt_tokens for completion in found} == {1, 7}


def test_requests_are_drawn_as_room_appears(toy_engine: Engine) -> None:
    """A table of a million rows streams through: what waits outside costs nothing."""
    drawn: list[int] = []

    def stream() -> Iterator[GenerationRequest]:
        for at in range(20):
            drawn.append(at)
            yield ask(str(at), new=1 + at % 3)

    ended = 0
    for _ in toy_engine.generate(stream()):
        ended += 1
        assert len(drawn) <= ended + 2 * 4
    assert ended == 20


def test_texts_do_not_depend_on_batch_or_budget(toy_path: Path) -> None:
    """Many small shapes on the toy, where every page border is near."""
    requests = [ask(str(at), "the inn " * (1 + at % 5) + "x" * at, 1 + at % 9) for at in range(17)]
    expected = None
    for max_batch, token_budget, cache_tokens in ((1, 1, 96), (16, 512, 2048), (3, 3, 128), (5, 7, 160)):
        engine = Engine.load(
            str(toy_path), max_batch=max_batch, token_budget=token_budget, cache_tokens=cache_tokens
        )
        found = finish(engine, *requests)
        expected = expected or found
        assert found == expected
        engine.node.runner.check_integrity()


def test_seeded_draws_do_not_depend_on_the_batch(toy_engine: Engine) -> None:
    """A drawn text can be drawn again, alone."""
    drawn = [ask(str(at), new=9, temperature=1.5, seed=at) for at in range(6)]
    together = finish(toy_engine, ask("greedy"), *drawn)
    for request in drawn:
        assert finish(toy_engine, request)[request.id] == together[request.id]
    assert len({together[str(at)].token_ids for at in range(6)}) > 1


def test_a_caller_who_leaves_gives_everything_back(toy_engine: Engine) -> None:
    """The fixture checks that every page is free."""
    with closing(toy_engine.generate(ask(str(at), new=1 + 9 * (at % 2)) for at in range(9))) as stream:
        next(stream)
    assert len(finish(toy_engine, ask("a"))) == 1


def test_an_error_of_the_callers_stream_gives_everything_back(toy_engine: Engine) -> None:
    """The rows come from files, and files break."""

    def stream() -> Iterator[GenerationRequest]:
        yield ask("a", new=1)
        yield ask("b", new=9)
        yield ask("c", new=9)
        yield ask("d", new=9)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(toy_engine.generate(stream()))


def test_two_at_once_are_refused(toy_engine: Engine) -> None:
    """They would wait for each other's pages."""
    first = toy_engine.generate([ask("a", new=1), ask("b", new=9)])
    next(first)
    with pytest.raises(EngineError, match="generating already"):
        next(toy_engine.generate([ask("c")]))
    assert [completion.id for completion in first] == ["b"]


def test_a_cache_held_by_somebody_else_is_an_error_and_no_endless_wait(toy_engine: Engine) -> None:
    """Two engines may share a node in turn, not at once."""
    toy_engine.node.runner.ingest_request("other", {"kv": KvClaim(256)})
    with pytest.raises(EngineError, match="held by somebody else"):
        finish(toy_engine, ask("a"))
    toy_engine.node.runner.remove_request("other")


def test_a_failed_pass_takes_its_rows_and_no_others(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory in one batch must not lose the next."""
    model = by_torch(toy_engine)
    calls: list[int] = []
    scores = model.scores

    def failing(hidden: torch.Tensor) -> torch.Tensor:
        calls.append(len(hidden))
        if len(calls) == 2:
            raise RuntimeError("out of memory")
        return scores(hidden)

    monkeypatch.setattr(model, "scores", failing)
    found = finish(toy_engine, *(ask(str(at), (5, 6), new=2) for at in range(6)))
    failed = {rid for rid, completion in found.items() if completion.finish_reason == "error"}
    assert failed == {"0", "1", "2", "3"}
    assert found["0"].error == "the forward pass failed: out of memory"
    assert len(found["0"].token_ids) == 1
    assert all(len(found[rid].token_ids) == 2 for rid in ("4", "5"))


@pytest.mark.parametrize(
    "error", [IndexError("out of range"), MemoryError(), NotImplementedError("no kernel")]
)
def test_whatever_torch_raises_ends_the_rows_alone(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Its errors are of many kinds, and some say nothing."""
    model = by_torch(toy_engine)
    errors = [error]
    scores = model.scores

    def failing_once(hidden: torch.Tensor) -> torch.Tensor:
        if errors:
            raise errors.pop()
        return scores(hidden)

    monkeypatch.setattr(model, "scores", failing_once)
    found = finish(toy_engine, *(ask(str(at)) for at in range(6)))
    failed = {rid for rid, completion in found.items() if completion.finish_reason == "error"}
    assert failed == {"0", "1", "2", "3"}
    assert found["0"].error == f"the forward pass failed: {str(error) or 'MemoryError'}"


def failing(error: Exception) -> Callable[..., object]:
    def fail(*_: object) -> object:
        raise error

    return fail


def test_a_request_that_cannot_be_opened_fails_alone(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resource that takes no more for one request says nothing about its neighbours."""
    sampler = toy_engine.node.runner.resources["sampler"]
    ingest = sampler.ingest

    def refusing(rid: str, overrides: object) -> None:
        ingest(rid, overrides)
        if rid.endswith(":bad"):
            raise ValueError("no")

    monkeypatch.setattr(sampler, "ingest", refusing)
    found = finish(toy_engine, ask("good"), ask("bad"), ask("also"))
    assert found["bad"].error == "opening the request failed: no"
    assert found["good"].token_ids == found["also"].token_ids != ()
    assert finish(toy_engine, ask("bad"))["bad"].finish_reason == "error"


@pytest.mark.parametrize("ends", ["runs on", "leaves"])
def test_a_resource_that_cannot_let_go_is_an_error_that_reaches_the_caller(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """The others are let go all the same, and the engine is free for the next call."""
    with monkeypatch.context() as patch:
        patch.setattr(toy_engine.node.runner.resources["sampler"], "remove", stuck_with("long"))
        stream = toy_engine.generate([ask("short", new=1), ask("long"), ask("other")])
        assert next(stream).id == "short"
        with pytest.raises(OSError, match="stuck"):
            list(stream) if ends == "runs on" else stream.close()
    assert toy_engine.node.cache.ledger.available == toy_engine.node.cache.ledger.total
    assert finish(toy_engine, ask("a"))["a"].finish_reason == "length"


def stuck_with(name: str) -> Callable[[str], None]:
    def remove(rid: str) -> None:
        if rid.endswith(name):
            raise OSError("stuck")

    return remove


def test_the_first_error_is_kept_when_giving_back_fails_too(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What broke is what must be mended; what broke while cleaning up is a note on it."""
    kv = toy_engine.node.runner.resources["kv"]
    with monkeypatch.context() as patch:
        patch.setattr(kv, "rollback", failing(EngineError("second")))
        patch.setattr(kv, "plan", failing(EngineError("first")))
        assert finish(toy_engine, ask("a"))["a"].error == "the forward pass failed: first"


def test_two_engines_take_turns_on_one_node(toy_engine: Engine) -> None:
    """Both count their requests from 0; one name for two requests would mix their caches."""
    other = Engine(toy_engine.node, toy_engine.tokenizer, max_batch=2, token_budget=16)
    alone = [finish(toy_engine, ask("a", prompt))["a"] for prompt in ("the inn", "other")]
    first, second = (
        engine.generate([ask("s", "x", 1), ask("a", prompt)])
        for engine, prompt in ((toy_engine, "the inn"), (other, "other"))
    )
    assert [next(first).id, next(second).id] == ["s", "s"]
    assert [next(first), next(second)] == alone


def test_what_is_no_request_is_said_and_not_skipped(toy_engine: Engine) -> None:
    """None in a stream looks like its end, and the rest would be lost without a word."""
    with pytest.raises(ArgumentError, match="takes GenerationRequest records, got None"):
        list(toy_engine.generate([None, ask("a")]))  # type: ignore[list-item]


def test_a_plan_that_fails_leaves_nothing_reserved(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between admit and commit lies everything that can go wrong."""

    def failing(step: ResourceStep, ctx: StepContext) -> object:
        raise EngineError("no plan")

    monkeypatch.setattr(toy_engine.node.runner.resources["attention"], "plan", failing)
    assert finish(toy_engine, ask("a"))["a"].error == "the forward pass failed: no plan"


def test_scores_that_are_no_numbers_end_their_own_request(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taking the first token of a row of NaN would look like an answer."""
    model = by_torch(toy_engine)
    scores = model.scores

    def poisoned(hidden: torch.Tensor) -> torch.Tensor:
        found = scores(hidden)
        if len(found) == 2:
            found[0, 3] = float("nan")
        return found

    alone = finish(toy_engine, ask("b", (5, 6)))["b"]
    monkeypatch.setattr(model, "scores", poisoned)
    found = finish(toy_engine, ask("a", (7, 8)), ask("b", (5, 6)))
    assert "not numbers" in str(found["a"].error)
    assert found["b"] == alone


def test_interruption_inside_a_pass_gives_everything_back(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C lands anywhere; the engine can be used again after it."""

    def interrupted(hidden: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(toy_engine.node.model, "scores", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finish(toy_engine, ask("a"))
    assert len(finish(toy_engine, ask("a"))["a"].token_ids) == 5


@pytest.mark.parametrize(
    "options",
    [
        {"max_batch": 0},
        {"token_budget": 1},
        {"threads": 0},
        {"threads": 20_000},
        {"threads": 10**30},
        {"cache_tokens": -1},
        {"cache_tokens": 0},
    ],
)
def test_limits_are_checked_at_load(toy_path: Path, options: dict[str, Any]) -> None:
    """Not at the first request, an hour later."""
    with pytest.raises(ArgumentError):
        Engine.load(str(toy_path), **options)


def test_the_seconds_of_requests_are_shares_of_the_time_that_passed(toy_engine: Engine) -> None:
    """What a row cost can be added up, and is no more than what passed on the clock."""
    begun = time.perf_counter()
    done = finish(toy_engine, *(ask(f"r{at}", new=4 + at) for at in range(6)))
    passed = time.perf_counter() - begun
    assert all(each.seconds > 0 for each in done.values())
    assert sum(each.seconds for each in done.values()) < passed


def test_the_loop_opens_with_its_walk() -> None:
    """The walk is the one page that a newcomer needs; its words are the names of the code."""
    import treadle.engine.loop as module

    words = [line.split()[0] for line in str(module.__doc__).splitlines() if line.startswith("    ")]
    assert words == [
        "schedule",
        "declare",
        "admit",
        "plan",
        "commit",
        "stage",
        "forward",
        "sample",
        "extend",
        "finish",
    ]
    assert callable(Loop.step)
