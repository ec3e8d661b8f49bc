"""The nouns: checked when made, and light to import."""

import subprocess
import sys

import pytest

import treadle.engine
from treadle.engine import GenerationRequest
from treadle.errors import ArgumentError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be a whole number of at least 1, got 0"),
        ({"max_new_tokens": 1, "temperature": -0.1}, "temperature must be 0 or more"),
        ({"max_new_tokens": 1, "temperature": float("nan")}, "temperature must be 0 or more"),
        ({"max_new_tokens": 1, "stop": ("a", "")}, "empty stop string"),
        ({"max_new_tokens": 2.5}, "max_new_tokens must be a whole number of at least 1, got 2.5"),
        ({"max_new_tokens": "5"}, "max_new_tokens must be a whole number of at least 1, got '5'"),
        ({"max_new_tokens": 1, "temperature": "1"}, "temperature must be 0 or more and finite, got '1'"),
        ({"max_new_tokens": 1, "stop": "ab"}, "stop must be a tuple of strings, got 'ab'"),
        ({"max_new_tokens": 1, "stop": (5,)}, "stop must be a tuple of strings"),
        ({"max_new_tokens": 1, "stop_tokens": 5}, "stop_tokens must be a tuple of token ids, got 5"),
        ({"max_new_tokens": 1, "top_k": -1}, "top_k must be a whole number of at least 0, got -1"),
        ({"max_new_tokens": 1, "top_p": 0}, "top_p must be above 0 and at most 1, got 0"),
        ({"max_new_tokens": 1, "top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5"),
        ({"max_new_tokens": 1, "min_p": -0.1}, "min_p must be from 0 to 1, got -0.1"),
        ({"max_new_tokens": 1, "min_p": 1.5}, "min_p must be from 0 to 1, got 1.5"),
        ({"max_new_tokens": 1, "repetition_penalty": 0}, "repetition_penalty must be above 0 and finite"),
        ({"max_new_tokens": 1, "logprobs": 21}, "logprobs must be a whole number from 0 to 20, got 21"),
        ({"max_new_tokens": 1, "seed": 2**63}, "seed must be a whole number below"),
        ({"max_new_tokens": 1, "seed": "s"}, "seed must be a whole number below"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_when_made(options: dict[str, object], said: str) -> None:
    """The place that made it is still on the stack, and the message names the request."""
    with pytest.raises(ArgumentError, match=f"'q7': .*{said}"):
        GenerationRequest("q7", "text", **options)  # type: ignore[arg-type]


def test_the_nouns_load_no_torch() -> None:
    """Others build requests and read completions in processes that compute nothing."""
    code = (
        "import sys, treadle.engine.requests, treadle.engine\n"
        "assert treadle.engine.GenerationRequest is treadle.engine.requests.GenerationRequest\n"
        "assert not {'torch', 'gguf', 'tokenizers', 'numpy'} & set(sys.modules)\n"
        "assert 'Engine' in treadle.engine.__all__"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_loads_later_is_listed() -> None:
    """`dir` is where a newcomer looks, and what completes names in a shell."""
    assert set(treadle.engine.__all__) <= set(dir(treadle.engine))


def test_without_torch_the_engine_gives_the_line_to_paste() -> None:
    """The engine's packages are an extra; the error of a newcomer must say which."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from treadle.errors import MissingExtraError\n"
        "import treadle.engine\n"
        "try:\n    treadle.engine.Engine\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "the engine needs the package 'torch'" in run.stdout
    assert "pip install 'treadle[engine]'" in run.stdout


def test_numpy_is_loaded_before_torch() -> None:
    """torch loads it from C code that drops a Ctrl-C which strikes there."""
    code = (
        "import sys\n"
        "class First:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch':\n"
        "            print('numpy' in sys.modules)\n"
        "            raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, First())\n"
        "from treadle.errors import MissingExtraError\n"
        "try:\n"
        "    from treadle.engine import Engine\n"
        "except MissingExtraError:\n"
        "    pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "True"
