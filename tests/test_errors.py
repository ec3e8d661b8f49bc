"""An error crosses process borders and keeps what it says."""

import pickle
import re

import pytest

from treadle import errors
from treadle.errors import (
    BadRowError,
    ManifestError,
    MissingExtraError,
    Problem,
    StepsFailedError,
    TreadleError,
    UnknownNameError,
    UsageError,
)

PROBLEM = Problem("run.yaml", 3, 7, "run.type", "one of mapping, reduce", "'mapp'", "mapping", ("root.yaml",))

SAMPLES = [
    UnknownNameError("format", "csvv", ["csv", "jsonl"]),
    ManifestError([PROBLEM]),
    MissingExtraError("torch", "engine", "generation"),
    BadRowError("shard.jsonl", 12, "not UTF-8"),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: TreadleError) -> None:
    """A worker process sends its error home; one that cannot be rebuilt there hides the cause."""
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_problem_says_where_expected_found_and_nearest() -> None:
    assert str(PROBLEM) == (
        "run.yaml:3:7: run.type: expected one of mapping, reduce, found 'mapp'; "
        "did you mean 'mapping'? (included by root.yaml)"
    )


def test_usage_errors_exit_with_2_and_the_rest_with_1() -> None:
    kinds = [
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, TreadleError)
    ]
    assert len(kinds) > 10
    assert all(kind.exit_code == (2 if issubclass(kind, UsageError) else 1) for kind in kinds)


def test_the_picture_at_the_top_names_every_error() -> None:
    drawn = re.findall(r"\w+Error", errors.__doc__ or "")
    defined = {name for name in vars(errors) if name.endswith("Error")}
    assert defined <= set(drawn)


def test_failures_of_a_run_survive_pickling() -> None:
    """A step may itself run an experiment, in another process."""
    failed = StepsFailedError("1 step failed: a", [ValueError("x")], {"b": 1})
    again = pickle.loads(pickle.dumps(failed))
    assert (str(again), repr(again.exceptions), again.results) == (
        str(failed),
        repr(failed.exceptions),
        {"b": 1},
    )


def test_failures_of_a_run_keep_the_results_when_split() -> None:
    failed = StepsFailedError("1 step failed: a", [ValueError("x"), OSError("y")], {"b": 1})
    matching, rest = failed.split(OSError)
    assert isinstance(matching, StepsFailedError)
    assert isinstance(rest, StepsFailedError)
    assert matching.results == rest.results == {"b": 1}
    assert str(failed) == "1 step failed: a"
