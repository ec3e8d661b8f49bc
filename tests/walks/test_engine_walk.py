"""The engine's walk, end to end: the real model names what a passage is about."""

from treadle.engine import Completion, Engine, GenerationRequest, Message

PASSAGE = (
    "The discovery of gold in California has drawn thousands of settlers across the plains. Miners "
    "wash the sand of every river, and the mint can hardly strike coin as fast as the metal arrives. "
    "The gold of these mines will raise the price of land and labor throughout the country."
)


def test_a_batch_of_chats_is_answered() -> None:
    """From a model's name to text: load, template, batch, pages, sampling, completion.

    Twenty requests through a batch of eight, one of them impossible: everyone is answered once, a
    repeated question gets a repeated answer, and the cache ends as empty as it began.
    """
    question = f"Name the topic of this text in at most three words.\n\n{PASSAGE}"
    engine = Engine.load("smollm2-135m-instruct", max_batch=8, threads=1)
    requests = [GenerationRequest(f"topic {at}", (Message("user", question),), 8) for at in range(3)]
    requests += [GenerationRequest(f"count {at}", "one, two, three, four,", 3 + at % 4) for at in range(16)]
    requests += [GenerationRequest("empty", "", 4)]

    found: dict[str, Completion] = {}
    for completion in engine.generate(requests):
        assert completion.id not in found
        found[completion.id] = completion

    assert found.keys() == {request.id for request in requests}
    assert found["empty"].finish_reason == "error"
    assert "gold" in found["topic 0"].text.lower()
    assert len({found[f"topic {at}"].text for at in range(3)}) == 1
    assert found["count 0"].text.startswith(" five, six")
    engine.node.runner.check_integrity()
    assert engine.node.cache.ledger.available == engine.node.cache.ledger.total
