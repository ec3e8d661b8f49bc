"""Model families by the names that checkpoints give them. A new family is a module here and a line below."""

from __future__ import annotations

from collections.abc import Callable

from treadle.engine.models import bert, llama_family
from treadle.engine.models.bert import Bert
from treadle.engine.models.build import Build
from treadle.engine.models.llama import Llama
from treadle.engine.models.native_llama import NativeLlama
from treadle.engine.weights import Checkpoint
from treadle.errors import UsageError
from treadle.kernel import Registry

LanguageModel = Llama | NativeLlama

language_models: Registry[Callable[[Checkpoint, Build], LanguageModel]] = Registry("architecture")
"""What generates: names as in `general.architecture` of GGUF, or `architectures` of Hugging Face."""

encoders: Registry[Callable[[Checkpoint], Bert]] = Registry("architecture")
"""What turns texts into vectors."""

for _name in llama_family.NAMES:
    language_models.register(_name, llama_family.load_llama)
for _name in bert.NAMES:
    encoders.register(_name, bert.load_bert)


def find_language_model(checkpoint: Checkpoint) -> Callable[[Checkpoint, Build], LanguageModel]:
    """What loads this checkpoint as a model that generates.

    Raises:
        UnknownNameError: its architecture is not known.
        UsageError: it is an encoder.
    """
    if checkpoint.architecture in encoders:
        raise UsageError(f"{checkpoint.path}: an encoder generates no text: load it by Encoder.load")
    return language_models.get(checkpoint.architecture)


def find_encoder(checkpoint: Checkpoint) -> Callable[[Checkpoint], Bert]:
    """What loads this checkpoint as a model that turns texts into vectors.

    Raises:
        UnknownNameError: its architecture is not known.
        UsageError: it is a language model.
    """
    if checkpoint.architecture in language_models:
        raise UsageError(f"{checkpoint.path}: a language model gives no vectors: load it by Engine.load")
    return encoders.get(checkpoint.architecture)
