"""Versions of a whole run: which steps they are for, and what they do to the identity of dependents."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.errors import ArgumentError, GraphError
from treadle.execution import lower, step
from treadle.execution.handles.versions import Versions


@step
def words(text: str) -> list[str]:
    return text.split()


@step
def count(lines: Any) -> int:
    return len(lines)


def test_a_version_gives_a_step_its_place_and_its_name_for_dependents() -> None:
    spec = lower(count(words("a").at("2026.02.03")), "/s")
    assert spec.deps[0].output_path == "/s/words/2026.02.03"
    assert spec.dep_ids == ("words@2026.02.03",)
    assert lower(count(words("b").at("2026.02.03"))).hash_id == spec.hash_id, (
        "the version stands for the recipe"
    )
    assert lower(count(words("a").at("2026.02.04"))).hash_id != spec.hash_id
    assert words("a").at("2026.02.03").hash_id == words("a").hash_id


def test_versions_are_for_the_steps_that_have_none() -> None:
    versions = Versions("2026.01.01", {"words": "2026.02.02"})
    spec = lower(
        count([words("a"), words("b").named("w2"), words("c").at("dev").at("2026.03.03")]),
        "/s",
        versions=versions,
    )
    assert spec.id == "count@2026.01.01"
    assert spec.dep_ids == ("words@2026.02.02", "w2@2026.01.01", "words@2026.03.03")
    assert versions.unused == ()


def test_an_exact_name_goes_before_patterns_and_the_first_pattern_counts() -> None:
    versions = Versions(names={"w*": "2026.01.01", "words": "2026.01.02", "*s": "2026.01.03", "x/*": "dev"})
    assert [versions.find(name) for name in ("words", "worlds", "steps", "x/y", "other")] == [
        "2026.01.02", "2026.01.01", "2026.01.03", "dev", None,
    ]  # fmt: skip


def test_names_that_matched_nothing_are_reported() -> None:
    versions = Versions(names={"wrods": "2026.01.01", "c*": "dev", "words": "2026.01.01"})
    lower(count(words("a").at("2026.01.01")), "/s", versions=versions)
    assert versions.unused == ("words", "wrods")


def test_a_handle_lowered_with_versions_is_as_if_it_had_been_made_with_them() -> None:
    """Also where a dependency without a version has another identity, since one above it has a version."""
    made = lower(count([count(words("a").at("2026.01.01")).named("c")]), "/s")
    given = lower(
        count([count(words("a")).named("c")]), "/s", versions=Versions(names={"words": "2026.01.01"})
    )
    assert given == made
    assert given.config == made.config
    assert given.id != lower(count([count(words("a")).named("c")]), "/s").id


def test_each_handle_is_lowered_once_for_a_run() -> None:
    versions, shared = Versions("dev"), words("a")
    one, two = (lower(count(shared).named(name), "/s", versions=versions) for name in "ab")
    assert one.deps[0] is two.deps[0]
    assert lower(shared, "/s").version is None


def test_a_fixed_version_on_a_dev_one_is_refused_near_and_far() -> None:
    """What was built on a day must not change with the next run of something under work."""
    near = count(words("a").at("me-dev")).at("2026.02.03")
    with pytest.raises(
        GraphError, match=r"step count@2026.02.03 has a fixed version and depends on words@me-dev, "
    ):
        lower(near, "/s")
    far = count(count(words("a").at("dev"))).named("far").at("2026.02.03")
    with pytest.raises(GraphError, match=r"far@2026.02.03 .* words@dev \(through count-[0-9a-f]{12}\)"):
        lower(far, "/s")
    lower(count(words("a").at("dev")).at("dev"), "/s")
    lower(count(words("a").at("dev")), "/s")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Versions("1"),
        lambda: Versions(names={"a": "2026.02.30"}),
        lambda: Versions(names=["a"]),  # type: ignore[arg-type]
        lambda: words("a").at("x"),
        lambda: step(version="x")(words.function),
    ],
)
def test_what_is_no_version_is_refused(make: Any) -> None:
    with pytest.raises(ArgumentError, match=r"(versions|step)[^\n]*: expected a"):
        make()
