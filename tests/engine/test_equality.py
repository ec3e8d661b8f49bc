"""The engine's greedy tokens against those of transformers, on the same weights in float32."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engine.reference import greedy
from treadle.engine.engine import Engine
from treadle.engine.requests import Completion, GenerationRequest, Message

# Most of it is the reference, which is slow to load.
pytestmark = pytest.mark.timeout(400)

NEW = 32
SPEECH = (
    "Fellow citizens of the Senate and House of Representatives: I embrace with great satisfaction "
    "the opportunity which now presents itself of congratulating you on the present favorable "
    "prospects of our public affairs. The recent accession of the important state of North Carolina "
    "to the Constitution of the United States, the rising credit and respectability of our country, "
    "the general and increasing good will toward the government of the Union, and the concord, peace, "
    "and plenty with which we are blessed are circumstances auspicious in an eminent degree to our "
    "national prosperity. In resuming your consultations for the general good you can not but derive "
    "encouragement from the reflection that the measures of the last session have been as "
    "satisfactory to your constituents as the novelty and difficulty of the work allowed you to hope."
)
WORDS = SPEECH.split()
PROMPTS: tuple[str | tuple[Message, ...], ...] = (
    "Once upon a time, there",
    "The capital of France is",
    "In 1848, gold was found in California, and",
    "def fibonacci(n):\n    if n < 2:\n        return",
    "Water boils at a temperature of 100 degrees; ice, on the other hand, melts at",
    "1, 1, 2, 3, 5, 8, 13,",
    *(" ".join(WORDS[:count]) for count in (5, 16, 31, 47, 90, len(WORDS))),
    (Message("user", "What is the difference between silver and gold?"),),
    (Message("system", "You answer in one word."), Message("user", "Which planet is the largest?")),
    (
        Message("user", "Name three rivers."),
        Message("assistant", "Nile, Rhine, Ohio."),
        Message("user", "Two more?"),
    ),
    (Message("user", "Give a topic of at most four words for this text: " + " ".join(WORDS[60:110])),),
)


@pytest.fixture(scope="module")
def requests() -> list[GenerationRequest]:
    return [GenerationRequest(str(at), prompt, NEW, ignore_eos=True) for at, prompt in enumerate(PROMPTS)]


@pytest.fixture(scope="module")
def prompt_ids(smollm_folder: Path, smollm_file: str) -> list[tuple[int, ...]]:
    """The prompts as transformers tokenises them, chats by its own template code."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(smollm_folder), gguf_file=smollm_file)

    def ids(prompt: str | tuple[Message, ...]) -> tuple[int, ...]:
        if isinstance(prompt, str):
            return tuple(tokenizer(prompt).input_ids)
        turns = [{"role": turn.role, "content": turn.content} for turn in prompt]
        return tuple(tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False))

    return [ids(prompt) for prompt in PROMPTS]


@pytest.fixture(scope="module")
def together(smollm: Engine, requests: list[GenerationRequest]) -> dict[str, Completion]:
    return by_id(smollm, requests)


def by_id(engine: Engine, requests: Sequence[GenerationRequest]) -> dict[str, Completion]:
    found = {completion.id: completion for completion in engine.generate(requests)}
    engine.node.runner.check_integrity()
    assert engine.node.cache.ledger.available == engine.node.cache.ledger.total
    return found


def test_prompts_are_of_all_sizes(prompt_ids: list[tuple[int, ...]]) -> None:
    """A set of like prompts would leave page borders and padding untried."""
    sizes = sorted(map(len, prompt_ids))
    assert len(sizes) == 16
    assert sizes[0] <= 6
    assert sizes[-1] >= 140
    assert len({size % 16 for size in sizes}) > 6


def test_batch_of_sixteen_equals_reference(
    together: dict[str, Completion], prompt_ids: list[tuple[int, ...]], reference: Any
) -> None:
    """The promise of the engine: the same model, only faster."""
    expected = greedy(reference, prompt_ids, NEW)
    for at, ids in enumerate(prompt_ids):
        completion = together[str(at)]
        assert completion.prompt_tokens == len(ids)
        assert len(completion.token_ids) == NEW
        assert completion.token_ids == expected[at].tokens, PROMPTS[at]


def test_alone_equals_batch(
    smollm: Engine, requests: list[GenerationRequest], together: dict[str, Completion]
) -> None:
    """What a request gets must not depend on who runs beside it."""
    for request in requests:
        assert by_id(smollm, [request])[request.id] == together[request.id]


@pytest.mark.parametrize(("max_batch", "token_budget"), [(16, 16), (5, 23)])
def test_small_chunks_equal_whole_prompts(
    smollm: Engine,
    requests: list[GenerationRequest],
    together: dict[str, Completion],
    max_batch: int,
    token_budget: int,
) -> None:
    """Cutting a prompt is a matter of scheduling: chunks cross page borders and mix with decoding rows."""
    cut = Engine(smollm.node, smollm.tokenizer, max_batch=max_batch, token_budget=token_budget)
    assert by_id(cut, requests) == together
