"""A version is a day that exists, or a dev version; the message says why something is neither."""

from typing import Any

import pytest

from treadle.artifacts.version import check_version, is_dev
from treadle.errors import ArgumentError


@pytest.mark.parametrize(
    "version", ["2026.02.03", "2024.02.29", "2026.02.03.0", "2026.12.31.12", "dev", "me-dev"]
)
def test_days_and_dev_versions_are_versions(version: str) -> None:
    assert check_version(version, "step") == version
    assert is_dev(version) == version.endswith("dev")


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("2026.02.30", "there is no such day"),
        ("2025.02.29", "there is no such day"),
        ("2026.13.01", "there is no such day"),
        ("0000.01.01", "there is no such day"),
        ("2026.2.3", "the form YYYY.MM.DD"),
        ("2026.02.03.01", "the form YYYY.MM.DD"),
        ("v1", "the form YYYY.MM.DD"),
        ("", "the form YYYY.MM.DD"),
        ("2026.02.03\n", "the form YYYY.MM.DD"),
        ("a/b-dev", "the form YYYY.MM.DD"),
        ("-dev", "the form YYYY.MM.DD"),
        ("٢٠٢٦.٠٢.٠٣", "the form YYYY.MM.DD"),
        (2026, "it is of the type int"),
    ],
)
def test_anything_else_is_refused_with_the_reason(version: Any, why: str) -> None:
    with pytest.raises(ArgumentError, match=f"step: expected a day such as .* got .*: .*{why}"):
        check_version(version, "step")


def test_a_step_without_a_version_is_no_dev_step() -> None:
    assert not is_dev(None)
