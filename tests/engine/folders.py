"""Hugging Face folders for tests: tiny random models, written by transformers itself."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as Pieces
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

os.environ["HF_HUB_OFFLINE"] = "1"

TEMPLATE = (
    "{% for message in messages %}{{ bos_token }}{{ message['role'] }}: {{ message['content'] }}"
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}{{ bos_token }}assistant:{% endif %}"
)
SPECIALS = ["<unk>", "<s>", "</s>"]
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n")]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,!?"]
PARTS = ["##" + each for each in "abcdefghijklmnopqrstuvwxyz"] + ["the", "gold", "##ing", "river", "北"]


def byte_pieces() -> Pieces:
    """Byte-level BPE with a start token before each text, as Llama 3 has it."""
    merged = [left + right for left, right in MERGES]
    words = [*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet()), *merged]
    pieces = Pieces(models.BPE(vocab={word: at for at, word in enumerate(words)}, merges=MERGES))
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    pieces.add_special_tokens(SPECIALS)
    pieces.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return pieces


def word_pieces() -> Pieces:
    """WordPiece as BERT has it."""
    words = [*WORDS, *PARTS]
    vocabulary = {word: at for at, word in enumerate(words)}
    pieces = Pieces(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.decoder = decoders.WordPiece()
    pieces.add_special_tokens(WORDS[:5])
    pieces.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return pieces


def write_language_model(folder: Path, family: str = "Llama", *, shard: str = "1GB", **changes: Any) -> Path:
    """A model of a family of transformers, whose every proportion differs from 1, with its tokenizer."""
    import transformers

    pieces = byte_pieces()
    sizes = {
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": pieces.get_vocab_size() + 3,
        "max_position_embeddings": 96,
        "rms_norm_eps": 1e-5,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    config = getattr(transformers, f"{family}Config")(**sizes | changes)
    _save(getattr(transformers, f"{family}ForCausalLM")(config), folder, shard)
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    _save_tokenizer(pieces, folder, chat_template=TEMPLATE, **names)
    return folder


def write_encoder(folder: Path, **changes: Any) -> Path:
    """A BERT model with its tokenizer."""
    import transformers

    pieces = word_pieces()
    sizes = {
        "num_hidden_layers": 2,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_attention_heads": 3,
        "vocab_size": pieces.get_vocab_size(),
        "max_position_embeddings": 48,
    }
    _save(transformers.BertModel(transformers.BertConfig(**sizes | changes)), folder, "1GB")
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    _save_tokenizer(pieces, folder, **names)
    return folder


def _save(model: Any, folder: Path, shard: str) -> None:
    """Weights far from those that a new model has, where biases are 0 and norms 1."""
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.randn(weight.shape, generator=draw) * 0.3 + ("norm" in name.lower()))
    model.save_pretrained(str(folder), max_shard_size=shard)


def _save_tokenizer(pieces: Pieces, folder: Path, **said: str) -> None:
    import transformers

    make: Any = transformers.PreTrainedTokenizerFast
    make(tokenizer_object=pieces, **said).save_pretrained(str(folder))


def change_config(folder: Path, **changes: Any) -> Path:
    """Other values in `config.json`; None takes a key away."""
    path = folder / "config.json"
    said = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in said.items() if value is not None}))
    return folder


def change_tensors(folder: Path, **changes: torch.Tensor | None) -> Path:
    """Other tensors in `model.safetensors`, their names with `__` for a dot; None takes one away."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    renamed = {name.replace("__", "."): tensor for name, tensor in changes.items()}
    found = {name: tensor.clone() for name, tensor in load_file(path).items()} | renamed
    save_file({name: tensor for name, tensor in found.items() if tensor is not None}, path)
    return folder
