"""The settings of a project: found upwards, and read strictly."""

from pathlib import Path

import pytest

from treadle.errors import UnknownNameError
from treadle.settings import find_settings


def test_the_nearest_file_upwards_holds(tmp_path: Path) -> None:
    (tmp_path / "treadle.toml").write_text('prefix = "there"')
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text('[project]\nname = "no table of ours"')
    assert find_settings(tmp_path / "a" / "b").table == {"prefix": "there"}


@pytest.mark.parametrize(
    ("file", "text", "where"),
    [
        ("treadle.toml", 'clustr = "processes"', "treadle.toml 'clustr'; did you mean 'cluster'"),
        ("treadle.toml", '[tool.treadle]\nprefix = "x"', "treadle.toml 'tool'"),
        ("pyproject.toml", '[tool.treadle]\nprefx = "x"', "tool.treadle 'prefx'; did you mean 'prefix'"),
    ],
)
def test_a_key_that_means_nothing_is_refused(tmp_path: Path, file: str, text: str, where: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(UnknownNameError, match=where) as caught:
        find_settings(tmp_path)
    assert "known: answer_seconds, cluster, clusters" in str(caught.value)
