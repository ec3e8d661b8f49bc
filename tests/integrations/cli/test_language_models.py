"""`treadle generate` and `treadle chat` with a real model, as a user calls them."""

import io
import json
import signal
import subprocess
import sys

import pytest

from tests.integrations.cli.conftest import COMMAND
from treadle.engine import Engine, GenerationRequest, Message
from treadle.integrations.cli.app import main

MODEL = "smollm2-135m-instruct"
QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """What the engine itself says."""
    engine = Engine.load(MODEL)
    asked = [QUESTION, "Name a river."]
    requests = [GenerationRequest(each, (Message("user", each),), 6) for each in asked]
    return {each.id: each.text for each in engine.generate(requests)}


def test_a_prompt_is_answered_as_by_the_engine(
    answers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", QUESTION, "--max-new-tokens", "6"]) == 0
    told = capsys.readouterr()
    assert told.out == answers[QUESTION] + "\n"
    assert "6 generated" in told.err


def test_lines_of_standard_input_are_answered_in_their_order(
    answers: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blank lines are no prompts; answers end in any order and are printed in that of the prompts."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{QUESTION}\n\nName a river.\n"))
    assert main(["generate", "--max-new-tokens", "6"]) == 0
    assert capsys.readouterr().out == "".join(f"{each}\n" for each in answers.values())


def test_a_prompt_without_an_answer_is_said_and_the_others_are_answered(
    answers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "word " * 9000, QUESTION, "--max-new-tokens", "6"]) == 1
    told = capsys.readouterr()
    assert told.out.endswith(answers[QUESTION] + "\n")
    assert "treadle: prompt 1: the prompt has" in told.err
    assert "1 of 2 prompts have no answer" in told.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["generate", "x", "--plain", "--system", "y"], "--system belongs to a chat"),
        (["generate", "x", "--model", "smollm"], "smollm2-135m-instruct"),
        (
            ["generate", "x", "--max-new-tokens", "0"],
            "treadle: max_new_tokens must be a whole number of at least 1",
        ),
        (["chat", "--model", "nowhere.gguf"], "nowhere.gguf: no such file"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(arguments) in (1, 2)
    assert said in capsys.readouterr().err


def test_a_turn_of_a_chat_sees_those_before_it_until_they_are_forgotten(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["My name is Ada.", "What is my name?", "/new", "What is my name?"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    assert main(["chat", "--max-new-tokens", "12"]) == 0
    told = capsys.readouterr()
    turns = told.err.split("\n")[1:4]
    read = [int(each.split()[0]) for each in turns]
    assert read[1] > read[0] + 12
    assert read[2] < read[0] + 5
    assert json.dumps(told.out).count("\\n") == 3


def test_ctrl_c_ends_the_answer_and_not_the_chat() -> None:
    """Whoever has read enough asks the next question."""
    process = subprocess.Popen(
        [*COMMAND, "chat", "--max-new-tokens", "4000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("Tell a very long story.\n")
    process.stdin.flush()
    first = process.stdout.read(20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate("/new\n", timeout=60)
    assert process.returncode == 0, err
    assert len(first) == 20
    assert out.endswith("\n")
    assert "generated" not in err
