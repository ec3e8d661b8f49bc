"""Opening Hugging Face folders, good and bad."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.engine.folders import change_config, change_tensors, write_language_model
from treadle.engine.engine import Engine
from treadle.engine.weights import open_checkpoint
from treadle.errors import ArtifactError, UnknownNameError

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("whole") / "toy")


@pytest.fixture(scope="module")
def written_in_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("parts") / "toy", shard="20KB")


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A folder of which a test may change anything."""
    return copytree(written, tmp_path / "toy")


@pytest.fixture
def parts(written_in_parts: Path, tmp_path: Path) -> Path:
    return copytree(written_in_parts, tmp_path / "toy")


def test_tensors_are_those_of_the_file(folder: Path) -> None:
    """By their own names, in the shapes that a model asks for."""
    checkpoint = open_checkpoint(folder)
    stored = load_file(folder / WEIGHTS)
    assert set(checkpoint.names) == set(stored)
    for name, tensor in stored.items():
        torch.testing.assert_close(checkpoint.tensor(name, tuple(tensor.shape)), tensor, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_become_float32(folder: Path, dtype: torch.dtype) -> None:
    """Most models are published in bfloat16."""
    weight = torch.randn(32).to(dtype)
    change_tensors(folder, model__norm__weight=weight)
    found = open_checkpoint(folder).tensor("model.norm.weight", (32,))
    torch.testing.assert_close(found, weight.float(), rtol=0, atol=0)


def test_parts_make_the_same_model(written: Path, written_in_parts: Path) -> None:
    """Large models come in several files and an index."""
    assert len(list(written_in_parts.glob("model-*.safetensors"))) > 2
    whole, parts = open_checkpoint(written), open_checkpoint(written_in_parts)
    assert set(whole.names) == set(parts.names)
    for name, tensor in load_file(written / WEIGHTS).items():
        assert torch.equal(parts.tensor(name, tuple(tensor.shape)), tensor)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_truncated_file_is_refused(folder: Path, part: float) -> None:
    """A download that broke off, in the header or in the weights."""
    data = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(data[: int(len(data) * part)])
    with pytest.raises(ArtifactError, match=r"model\.safetensors: cannot be read as safetensors"):
        Engine.load(str(folder))


def rewrite_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    change(header)
    written = json.dumps(header).encode()
    path.write_bytes(len(written).to_bytes(8, "little") + written + data[8 + size :])


@pytest.mark.parametrize(
    "lie", [{"shape": [32, 32]}, {"data_offsets": [0, 2**50]}, {"data_offsets": [0, 4]}, {"dtype": "F99"}]
)
def test_a_header_that_lies_is_refused(folder: Path, lie: dict[str, Any]) -> None:
    """The library holds the header against the file."""
    rewrite_header(folder / WEIGHTS, lambda header: header["model.norm.weight"].update(lie))
    with pytest.raises(ArtifactError, match=r"model\.safetensors: cannot be read as safetensors"):
        Engine.load(str(folder))


def test_a_part_that_is_missing_is_named(parts: Path) -> None:
    """One of many downloads did not come."""
    lost = sorted(parts.glob("model-*.safetensors"))[1]
    lost.unlink()
    with pytest.raises(ArtifactError, match=rf"{lost.name}: cannot be read as safetensors"):
        Engine.load(str(parts))


def change_index(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


def test_an_index_that_does_not_fit_its_parts_is_refused(parts: Path) -> None:
    """Parts of two downloads; whichever side has more."""
    change_index(parts, lambda placed: placed.update(more=placed["model.norm.weight"]))
    with pytest.raises(ArtifactError, match=r"1 tensors stand either .*'more', in model\.safetensors\.index"):
        Engine.load(str(parts))
    change_index(parts, lambda placed: placed.pop("more"))
    change_index(parts, lambda placed: placed.pop("model.norm.weight"))
    with pytest.raises(ArtifactError, match=r"1 tensors stand either .*'model\.norm\.weight', in model-0"):
        Engine.load(str(parts))


def test_a_tensor_in_another_part_than_the_index_says_is_refused(parts: Path) -> None:
    """Which of two parts holds the right one is not for us to guess."""
    others = sorted(parts.glob("model-*.safetensors"))
    change_index(parts, lambda placed: placed.update({"model.norm.weight": others[0].name}))
    with pytest.raises(ArtifactError, match=r"2 tensors stand either .*'model\.norm\.weight', in model"):
        Engine.load(str(parts))


@pytest.mark.parametrize("place", ["../toy2/model.safetensors", "/etc/passwd", "model.bin", 5])
def test_an_index_cannot_point_elsewhere(parts: Path, place: object) -> None:
    """It comes with weights from anywhere."""
    change_index(parts, lambda placed: placed.update({"model.norm.weight": place}))
    with pytest.raises(
        ArtifactError, match=r"index\.json: weight_map should give each tensor a file of this"
    ):
        Engine.load(str(parts))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pth"])
def test_a_pickle_is_never_opened(folder: Path, name: str) -> None:
    """Unpickling runs whatever code is in the file."""
    (folder / WEIGHTS).rename(folder / name)
    with pytest.raises(ArtifactError, match=rf"pickle \({name}\).*never opened.*save_pretrained"):
        Engine.load(str(folder))


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_file_of_a_folder_says_to_give_the_folder(folder: Path, name: str) -> None:
    """The path of the weights is the first that comes to mind."""
    with pytest.raises(
        ArtifactError, match=rf"{name}: a part of a Hugging Face folder: give the folder, {folder}"
    ):
        Engine.load(str(folder / name))


def test_a_folder_without_weights_says_what_was_expected(folder: Path) -> None:
    """The config came, the weights did not."""
    (folder / WEIGHTS).unlink()
    with pytest.raises(ArtifactError, match=r"toy: no weights: expected model\.safetensors, or "):
        Engine.load(str(folder))


def test_a_folder_without_a_config_says_what_was_expected(folder: Path) -> None:
    """It is no model, and no file in it is damaged."""
    (folder / "config.json").unlink()
    said = r"toy: the folder has no config\.json: a Hugging Face folder holds config\.json, tokenizer\.json"
    with pytest.raises(ArtifactError, match=said):
        Engine.load(str(folder))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read as JSON"),
        ("{'a': 1}", "cannot be read as JSON"),
        ('{"rms_norm_eps": NaN}', "cannot be read as JSON"),
        ('{"rms_norm_eps": 1e999}', "cannot be read as JSON|finite number"),
        ("[1]", "expected a JSON dict, got list"),
        ("{}", "architectures should be list, got NoneType"),
        ('{"architectures": []}', r"architectures\[0\] should be str, got NoneType"),
        ('{"architectures": [5]}', r"architectures\[0\] should be str, got int"),
    ],
)
def test_a_config_that_is_none_is_refused_with_its_place(folder: Path, text: str, said: str) -> None:
    """An error page, half a download, a number that is none."""
    (folder / "config.json").write_text(text)
    with pytest.raises(ArtifactError, match=rf"config\.json: {said}"):
        Engine.load(str(folder))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("hidden_size", "32", "should be int, got str"),
        ("hidden_size", True, "should be int, got bool"),
        ("hidden_size", 32.0, "should be int, got float"),
        ("rms_norm_eps", "small", "should be float, got str"),
        ("num_hidden_layers", None, "should be int, got NoneType"),
    ],
)
def test_a_config_value_of_another_kind_is_named(folder: Path, key: str, value: object, said: str) -> None:
    """Found where it is read, not as a failed product in the first request."""
    change_config(folder, **{key: value})
    with pytest.raises(ArtifactError, match=rf"config\.json: {key} {said}"):
        Engine.load(str(folder))


def test_a_whole_number_is_a_float_as_well(folder: Path) -> None:
    """JSON writes 10000.0 as 10000 where it likes."""
    change_config(folder, some_size=10000)
    assert open_checkpoint(folder).value("some_size", float) == 10000.0


def test_an_unknown_architecture_lists_the_known(folder: Path) -> None:
    """The folder is fine, only not for this engine."""
    change_config(folder, architectures=["MambaForCausalLM"])
    with pytest.raises(UnknownNameError, match=r"architecture 'MambaForCausalLM'.*LlamaForCausalLM"):
        Engine.load(str(folder))


def test_quantised_weights_are_refused_with_what_to_take(folder: Path) -> None:
    """Their numbers mean nothing without their scales."""
    change_config(folder, quantization_config={"quant_method": "gptq"})
    with pytest.raises(ArtifactError, match=r"quantised weights .* or a GGUF file of it"):
        Engine.load(str(folder))
    change_config(folder, quantization_config=None)
    change_tensors(folder, model__norm__weight=torch.ones(32, dtype=torch.int8))
    with pytest.raises(ArtifactError, match=r"'model\.norm\.weight' is of torch\.int8, known: "):
        Engine.load(str(folder))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model__norm__weight": None}, r"'model\.norm\.weight' should have shape \(32,\), got None"),
        ({"model__norm__weight": torch.ones(31)}, r"should have shape \(32,\), got \(31,\)"),
        ({"model__norm__bias": torch.ones(32)}, r"1 tensors belong to no part .*'model\.norm\.bias'"),
    ],
)
def test_weights_that_do_not_fit_the_config_are_refused(
    folder: Path, changes: dict[str, torch.Tensor | None], said: str
) -> None:
    """Missing, of another model, or with parts that would be left out."""
    change_tensors(folder, **changes)
    with pytest.raises(ArtifactError, match=said):
        Engine.load(str(folder))


def test_loading_asks_no_network_and_unpickles_nothing(folder: Path) -> None:
    """Weights come from anywhere; they are read, and nothing else happens."""
    code = (
        "import sys\n"
        "from treadle.engine import Encoder, Engine\n"
        "import treadle.engine.engine, treadle.engine.encoder\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith(('socket.', 'pickle.', 'subprocess.', 'urllib.')):\n"
        "        raise SystemExit(f'{event} {arguments}')\n"
        "sys.addaudithook(refuse)\n"
        "Engine.load(sys.argv[1], kernels='torch')\n"
        "Encoder.load('all-minilm-l6-v2').embed(['gold'])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_folder_is_refused_or_still_a_model(folder: Path, seed: int) -> None:
    """Wherever a byte has rotted, the answer names the folder, and is no crash."""
    chance = random.Random(seed)
    path = chance.choice(sorted(folder.iterdir()))
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 1, 3])):
        data[chance.randrange(min(len(data), 3000))] = chance.randrange(32, 127)
    path.write_bytes(data)
    try:
        Engine.load(str(folder), cache_tokens=64)
    except ArtifactError as error:
        assert str(folder) in str(error)  # noqa: PT017 - both outcomes are right
    except UnknownNameError as error:
        assert "known: " in str(error)  # noqa: PT017
