"""RunContext: frozen, with an id that sorts by time."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone

import pytest

from treadle.errors import ArgumentError
from treadle.processing.context import RunContext, new_run_id


def test_ids_sort_by_time_whatever_the_zone() -> None:
    """Folders and logs of runs are read in the order of their names."""
    start = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
    later = (start + timedelta(seconds=1)).astimezone(timezone(timedelta(hours=-8)))
    assert new_run_id(start) < new_run_id(later)


def test_two_ids_of_one_moment_differ() -> None:
    """Two workers may start in the same microsecond."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert len({new_run_id(now) for _ in range(100)}) == 100


def test_create_fills_in_what_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    ctx = RunContext.create("corpus.partition", "/tmp/out")
    assert (ctx.step_id, ctx.output_root, ctx.user, ctx.integration, ctx.attempt) == (
        "corpus.partition",
        "/tmp/out",
        "ada",
        "python",
        1,
    )


def test_a_user_is_found_without_a_name_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers often run as a user id that has no name."""
    monkeypatch.delenv("USER", raising=False)
    monkeypatch.delenv("LOGNAME", raising=False)
    assert RunContext.create("s", "/tmp/out").user.startswith("uid ")


def test_nothing_changes_while_the_run_goes_on() -> None:
    ctx = RunContext.create("s", "/tmp/out")
    with pytest.raises(FrozenInstanceError):
        ctx.attempt = 2  # type: ignore[misc]


def test_an_overlay_wins_and_leaves_the_first_context_alone() -> None:
    ctx = RunContext.create("s", "/tmp/out", params={"a": 1, "b": 1})
    assert ctx.with_params({"b": 2}).params == {"a": 1, "b": 2}
    assert ctx.with_params(None).params == {"a": 1, "b": 1}
    assert ctx.params == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("step_id", {"step_id": ""}),
        ("output_root", {"output_root": ""}),
        ("attempt", {"attempt": 0}),
    ],
)
def test_a_senseless_context_is_refused(field: str, values: dict[str, object]) -> None:
    told: dict[str, object] = {"run_id": "r", "step_id": "s", "output_root": "o", "user": "u", **values}
    with pytest.raises(ArgumentError, match=rf"RunContext\.{field}"):
        RunContext(**told)  # type: ignore[arg-type]
