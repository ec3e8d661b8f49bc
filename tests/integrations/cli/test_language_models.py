"""`treadle generate` and `treadle chat` with a real model, as a user calls them."""

import io
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from tests.integrations.cli.conftest import COMMAND
from treadle.engine import Engine, GenerationRequest, Message
from treadle.engine.models.build import Precision
from treadle.integrations.cli.app import main
from treadle.integrations.cli.speaking import Speaking

MODEL = "smollm2-135m-instruct"
QUESTION = "What is the capital of France?"


def test_the_commands_know_the_precisions_that_the_engine_has() -> None:
    """They are written down again, for `--help` does not load the engine."""
    assert get_args(get_type_hints(Speaking)["precision"]) == get_args(Precision)


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


def test_json_is_json_where_the_output_has_no_letters_for_it(tmp_path: Path) -> None:
    """`\\xfc` would be none, nor would bytes that are no text, as a shell may hand them over."""
    arguments = ["generate", "ü 北 \udcff", "--json", "--max-new-tokens", "1"]
    ended = subprocess.run(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(ended.stdout)["prompt"] == arguments[1]


def test_who_types_prompts_is_told_how_to_end_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the command looks as if it hung."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(" \n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert main(["generate"]) == 2
    assert capsys.readouterr().err.startswith("a prompt a line; Ctrl-D ends them\n")


def test_a_prompt_without_an_answer_is_said_and_the_others_are_answered(
    answers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "word " * 9000, QUESTION, "--max-new-tokens", "6"]) == 1
    told = capsys.readouterr()
    assert told.out.endswith(answers[QUESTION] + "\n")
    assert "treadle: prompt 1: the prompt has" in told.err
    assert "1 of 2 prompts have no answer" in told.err
    assert int(told.err.split(" tokens read")[0].split()[-1].replace(",", "")) < 100  # the other was not read


def test_a_line_of_json_for_each_prompt_keeps_answers_of_several_lines_apart(
    answers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also for one that failed, so that line n is that of prompt n."""
    assert main(["generate", "word " * 9000, QUESTION, "--max-new-tokens", "6", "--json"]) == 1
    told = capsys.readouterr()
    failed, answered = map(json.loads, told.out.splitlines())
    assert answered.pop("prompt_tokens") > len(QUESTION.split())
    assert answered == {
        "prompt": QUESTION,
        "answer": answers[QUESTION],
        "new_tokens": 6,
        "finish_reason": "length",
    }
    assert (failed["answer"], failed["finish_reason"]) == ("", "error")
    assert failed["error"].startswith("the prompt has")


def test_an_answer_ends_before_the_first_of_the_texts_that_end_it(
    answers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = answers[QUESTION].split()[1:3]
    arguments = ["generate", QUESTION, "--max-new-tokens", "6", "--stop", second, "--stop", first]
    assert main(arguments) == 0
    assert capsys.readouterr().out == answers[QUESTION].split(first)[0] + "\n"


def test_tokens_far_less_likely_than_the_likeliest_can_be_left_out(
    answers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With a share of 1 only the likeliest is left, however hot the draw."""
    arguments = ["generate", QUESTION, "--max-new-tokens", "6", "--temperature", "5", "--min-p"]
    assert main([*arguments, "1"]) == 0
    assert capsys.readouterr().out == answers[QUESTION] + "\n"
    assert main([*arguments, "0"]) == 0
    assert capsys.readouterr().out != answers[QUESTION] + "\n"


def test_what_the_engine_takes_its_time_for_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first start compiles for fifteen seconds, and would look as if it hung."""
    logger = logging.getLogger("treadle.engine")
    before = logger.level, list(logger.handlers)

    def load(*_: object, **__: object) -> None:
        logging.getLogger("treadle.engine.kernels.library").info("compiling")

    monkeypatch.setattr(Engine, "load", load)
    Speaking().load()
    assert capsys.readouterr().err == "treadle: compiling\n"
    assert (logger.level, logger.handlers) == before


def test_an_answer_that_was_cut_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    """It looks whole where a sentence happens to end."""
    assert main(["generate", QUESTION, "--max-new-tokens", "6"]) == 0
    assert capsys.readouterr().err.endswith("tokens/s); 1 cut short by --max-new-tokens\n")
    assert main(["generate", QUESTION]) == 0
    assert capsys.readouterr().err.endswith("tokens/s)\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["generate", "x", "--plain", "--system", "y"], "--system belongs to a chat"),
        (["generate", "x", "--model", "smollm"], "smollm2-135m-instruct"),
        (
            ["generate", "x", "--max-new-tokens", "0"],
            "treadle: max_new_tokens must be a whole number of at least 1",
        ),
        (["generate", "x", "--repetition-penalty", "0"], "treadle: repetition_penalty must be above 0"),
        (["generate", "x", "--precision", "float16"], "float16"),
        (["generate", "x", "--min-p", "2"], "treadle: min_p must be from 0 to 1"),
        (["generate", "x", "--stop", ""], "treadle: an empty stop string"),
        (["generate", "x", "--model", "all-minilm-l6-v2"], "is an encoder, which generates no text"),
        (["chat", "--model", "nowhere.gguf"], "nowhere.gguf: no such file"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(arguments) == 2
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


def test_a_turn_that_cannot_be_answered_is_said_and_forgotten(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To forget the turns before helps only where there are any."""
    long = "word " * 9000
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{long}\nName a river.\n{long}\n"))
    assert main(["chat", "--max-new-tokens", "3"]) == 0
    first, answered, last = capsys.readouterr().err.splitlines()[1:]
    assert first.startswith("treadle: the prompt has")
    assert first.endswith("shorten the prompt")
    assert int(answered.split()[0]) < 100
    assert last.endswith("; /new begins again with nothing to remember")


def test_a_command_is_no_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model would answer to /help, at length, and the chat would go on after /quit."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"/help\n/etc/hosts is\n/quit\n{QUESTION}\n"))
    assert main(["chat", "--max-new-tokens", "3"]) == 0
    told = capsys.readouterr()
    assert "treadle: unknown command /help: /new begins again" in told.err
    assert told.err.count("tokens/s") == 1


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
