"""The encoder against transformers: tiny random models, and the real one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.engine.folders import change_config, change_tensors, write_encoder, write_language_model
from treadle.engine import Encoder, Engine
from treadle.engine.catalog import locate_encoder
from treadle.errors import ArgumentError, ArtifactError, UnknownNameError, UsageError

Vectors = npt.NDArray[np.float32]
WORDS = "the gold river was found in California; naïve 北 people went, and many others (8,000!) came after"


def texts(count: int, longest: int) -> list[str]:
    """Of all lengths, many of them alike, in no order."""
    draw = np.random.default_rng(3)
    words = WORDS.split()
    lengths = draw.integers(1, longest, count).tolist()
    return ["", *(" ".join(draw.choice(words, length)) for length in lengths[1:])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoder") / "toy")


@pytest.fixture(scope="module")
def toy(folder: Path) -> Encoder:
    return Encoder.load(str(folder))


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return Encoder.load("all-minilm-l6-v2")


def reference(folder: Path, batch: Sequence[str], longest: int) -> Vectors:
    """As the model's own page says: the mean over the attention mask, made to length 1."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    model: Any = AutoModel.from_pretrained(str(folder))
    model.eval()
    found = np.empty((len(batch), model.config.hidden_size), np.float32)
    by_length = sorted(range(len(batch)), key=lambda at: len(batch[at]))
    for begin in range(0, len(batch), 8):
        places = by_length[begin : begin + 8]
        inputs = tokenizer(
            [batch[at] for at in places],
            padding=True,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
        )
        with torch.no_grad():
            states = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"][..., None].float()
        found[places] = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1).numpy()
    return found


def test_vectors_of_a_tiny_model_equal_the_reference(folder: Path, toy: Encoder) -> None:
    """Weights far from a new model's, so that every part of it counts."""
    batch = texts(40, 12)
    found = toy.embed(batch, truncate=True)
    assert found.shape == (40, 24)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference(folder, batch, 48), atol=1e-5)


def test_vectors_of_the_real_model_equal_the_reference(minilm: Encoder) -> None:
    """64 texts, two of them longer than the model reads."""
    batch = [*texts(62, 30), *(" ".join([WORDS] * count) for count in (12, 14))]
    assert sum(len(minilm.tokenizer.encode(text)) > minilm.context for text in batch) == 2
    found = minilm.embed(batch, truncate=True)
    np.testing.assert_allclose(found, reference(locate_encoder("all-minilm-l6-v2"), batch, 256), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_a_vector_does_not_depend_on_batch_mates(minilm: Encoder) -> None:
    """Alone, among others, in another order: the same vector."""
    batch = texts(24, 30)
    together = minilm.embed(batch)
    alone = np.concatenate([minilm.embed([text]) for text in batch])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(together[::-1], minilm.embed(batch[::-1]), atol=1e-6)


def test_texts_of_like_meaning_lie_near(minilm: Encoder) -> None:
    """What the vectors are for."""
    vectors = minilm.embed(
        ["A king rules a land.", "The queen governs her country.", "Boil the rice for an hour."]
    )
    likeness = vectors @ vectors.T
    assert likeness[0, 1] > 0.4 > 0.2 > likeness[0, 2]


def test_more_texts_than_one_pass_takes(toy: Encoder) -> None:
    """Batches are cut by tokens; each text has its own place in the result, and none has none."""
    batch = [text[:30] for text in texts(400, 8)]
    some = [7, 199, 399]
    np.testing.assert_allclose(toy.embed(batch)[some], toy.embed([batch[at] for at in some]), atol=1e-6)
    assert toy.embed([]).shape == (0, toy.width)


def test_a_text_that_is_too_long_is_refused_or_cut(toy: Encoder) -> None:
    """A vector of half a text, without anybody having asked for it, would be a wrong one."""
    long = "gold " * 100
    with pytest.raises(ArgumentError, match=r"text 1 has 102 tokens, the model reads 48: .*truncate=True"):
        toy.embed(["the", long])
    np.testing.assert_allclose(toy.embed([long], truncate=True), toy.embed(["gold " * 46]), atol=1e-6)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ("gold", "a single text"),
        ([5], "text 0: expected a text, got 5"),
        (["a", "\ud800"], "text 1: no valid Unicode"),
    ],
)
def test_what_is_no_text_is_named_by_its_place(toy: Encoder, batch: Any, said: str) -> None:
    """One bad row in a thousand must be found."""
    with pytest.raises(ArgumentError, match=said):
        toy.embed(batch)


def test_an_encoder_and_a_language_model_are_told_apart(folder: Path, tmp_path: Path) -> None:
    """Each says how the other is loaded."""
    with pytest.raises(UsageError, match=r"an encoder generates no text: load it by Encoder\.load"):
        Engine.load(str(folder))
    with pytest.raises(UsageError, match=r"gives no vectors: load it by Engine\.load"):
        Encoder.load(str(write_language_model(tmp_path / "toy")))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_act": "relu"}, "hidden_act 'relu' is not known here"),
        ({"position_embedding_type": "relative_key"}, "'relative_key' is not known here"),
        ({"num_attention_heads": 5}, "needs whole heads and layers"),
        ({"num_attention_heads": 0}, "needs whole heads and layers"),
        (
            {"intermediate_size": 41},
            r"intermediate\.dense\.weight' should have shape \(41, 24\), got \(40, 24\)",
        ),
        ({"num_hidden_layers": 1}, r"16 tensors belong to no part of a BERT model .*'encoder\.layer\.1"),
        ({"num_hidden_layers": 3}, r"'encoder\.layer\.2\..* got None"),
    ],
)
def test_a_model_that_does_not_fit_its_config_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """Found at load, with the folder."""
    folder = change_config(write_encoder(tmp_path / "toy"), **changes)
    with pytest.raises(ArtifactError, match=rf"toy: .*{said}"):
        Encoder.load(str(folder))


def test_an_unknown_architecture_lists_the_known(tmp_path: Path) -> None:
    """The folder is fine, only not for this engine."""
    folder = change_config(write_encoder(tmp_path / "toy"), architectures=["T5EncoderModel"])
    with pytest.raises(UnknownNameError, match=r"'T5EncoderModel'.* \(known: BertModel\)"):
        Encoder.load(str(folder))


def test_a_head_that_is_not_needed_may_be_missing(tmp_path: Path, folder: Path, toy: Encoder) -> None:
    """Many encoders are published without the part that BERT was trained with."""
    bare = write_encoder(tmp_path / "toy")
    change_tensors(bare, pooler__dense__weight=None, pooler__dense__bias=None)
    np.testing.assert_array_equal(Encoder.load(str(bare)).embed(["gold"]), toy.embed(["gold"]))


def pooled(folder: Path, *kinds: str, **modes: bool) -> Path:
    """What sentence-transformers writes beside a model."""
    modules = [
        {"idx": at, "type": f"sentence_transformers.models.{kind}", "path": f"{at}_{kind}"}
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({f"pooling_mode_{mode}": on for mode, on in modes.items()})
    )
    return folder


def test_another_way_of_pooling_is_refused_by_name(tmp_path: Path) -> None:
    """Other vectors than those the model was trained to give."""
    folder = write_encoder(tmp_path / "toy")
    Encoder.load(str(pooled(folder, "Transformer", "Pooling", mean_tokens=True, cls_token=False)))
    with pytest.raises(ArtifactError, match="1_Pooling: pooling_mode_cls_token is not known here"):
        Encoder.load(str(pooled(folder, "Transformer", "Pooling", mean_tokens=False, cls_token=True)))
    with pytest.raises(
        ArtifactError, match=r"modules\.json: Dense is not known here, known: Normalize, Pool"
    ):
        Encoder.load(str(pooled(folder, "Transformer", "Pooling", "Dense", mean_tokens=True)))
    (folder / "modules.json").write_text("[5]")
    with pytest.raises(ArtifactError, match=r"modules\.json: each module should be dict, got int"):
        Encoder.load(str(folder))
    (folder / "modules.json").write_text('[{"type": "Pooling", "path": "../elsewhere"}]')
    with pytest.raises(ArtifactError, match=r"'../elsewhere' should be a folder within this one"):
        Encoder.load(str(folder))


def test_a_text_without_a_token_has_no_vector(tmp_path: Path) -> None:
    """Most tokenizers put tokens around each text; this one does not."""
    folder = write_encoder(tmp_path / "toy")
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"post_processor": None}))
    with pytest.raises(ArgumentError, match="text 1 has no tokens, and so no vector: ''"):
        Encoder.load(str(folder)).embed(["the gold", ""])


def test_a_folder_may_say_that_it_reads_less(tmp_path: Path) -> None:
    """As all-MiniLM-L6-v2 does: trained on short texts, with positions for longer ones."""
    folder = write_encoder(tmp_path / "toy")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 10}')
    assert Encoder.load(str(folder)).context == 10
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 1000}')
    assert Encoder.load(str(folder)).context == 48
