"""The choices of a caller, checked before a weight is read."""

from pathlib import Path

import pytest

from treadle.engine.engine import Engine
from treadle.errors import UnknownNameError


@pytest.mark.parametrize("choice", [{"precision": "float16"}, {"kernels": "fast"}])
def test_an_unknown_choice_is_refused_with_those_there_are(toy_path: Path, choice: dict[str, str]) -> None:
    """A misspelt precision must not run in another one."""
    with pytest.raises(UnknownNameError, match=r"float16.*bfloat16|fast.*native"):
        Engine.load(str(toy_path), **choice)  # type: ignore[arg-type]
