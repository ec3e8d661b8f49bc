"""Resources: said once, added up exactly, and refused in words."""

import os
import pickle
from collections import Counter
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import ArgumentError
from treadle.fray import Budget, ResourceConfig, ThreadClient, check_count

AMOUNTS = st.sampled_from([0, 0.1, 0.25, 1 / 3, 0.7, 1, 1.5, 2])
REQUESTS = st.builds(
    ResourceConfig,
    cpu=AMOUNTS,
    memory=st.integers(0, 5),
    gpu=AMOUNTS,
    tags=st.dictionaries(st.sampled_from(["disk", "licence"]), AMOUNTS),
)


def test_a_config_can_be_a_key_and_travels() -> None:
    one = ResourceConfig(cpu=2, tags={"disk": 1, "licence": 2})
    other = ResourceConfig(cpu=2, tags={"licence": 2, "disk": 1})
    assert {one: "here"}[other] == "here"
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != ResourceConfig(cpu=2)


def test_a_config_does_not_follow_the_mapping_it_was_made_of() -> None:
    tags = {"disk": 1.0}
    config = ResourceConfig(tags=tags)
    tags["disk"] = 5
    assert config.tags == {"disk": 1}


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"cpu": -1}, "cpu: expected a number of at least 0, got -1"),
        ({"cpu": True}, "cpu: .* got True"),
        ({"cpu": float("nan")}, "cpu: .* got nan"),
        ({"gpu": float("inf")}, "gpu: .* got inf"),
        ({"gpu": "1"}, "gpu: .* got '1'"),
        ({"memory": 1.5}, "memory: expected a whole number of at least 0, got 1.5"),
        ({"memory": -1}, "memory: .* got -1"),
        ({"tags": {"disk": -1}}, "tags.disk: .* got -1"),
        ({"tags": {"": 1}}, "tags: expected names that are not empty, got ''"),
        ({"tags": ["disk"]}, r"tags: expected a mapping of names to amounts, got \['disk'\]"),
    ],
)
def test_what_is_no_amount_is_refused(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ResourceConfig(**given_)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (ResourceConfig(), None),
        (ResourceConfig(cpu=4, memory=2_000_000, gpu=0.5, tags={"licence": 2}), None),
        (ResourceConfig(cpu=4.5), "cpu: 4.5 asked for, and there is 4 in all"),
        (
            ResourceConfig(memory=3_000_000),
            "memory in bytes: 3,000,000 asked for, and there is 2,000,000 in all",
        ),
        (ResourceConfig(gpu=1), "gpu: 1 asked for, and there is 0.5 in all"),
        (ResourceConfig(tags={"licence": 3}), "tag 'licence': 3 asked for, and there is 2 in all"),
        (
            ResourceConfig(tags={"license": 1}),
            "unknown tag 'license'; did you mean 'licence'? (known: disk, licence)",
        ),
    ],
)
def test_what_can_never_fit_is_told_in_words(request_: ResourceConfig, reason: str | None) -> None:
    """Else a step waits for ever for a device that no machine has."""
    total = ResourceConfig(cpu=4, memory=2_000_000, gpu=0.5, tags={"licence": 2, "disk": 1})
    budget = Budget(total)
    assert budget.can_ever(request_) == reason
    assert budget.fits(request_) is (reason is None)


@given(st.data())
def test_the_sums_are_right_whatever_is_taken_and_given(data: st.DataObject) -> None:
    total = ResourceConfig(cpu=2, memory=5, gpu=1, tags={"disk": 2, "licence": 0.3})
    budget = Budget(total)
    taken: list[ResourceConfig] = []
    for request in data.draw(st.lists(REQUESTS, max_size=30)):
        if budget.fits(request):
            assert budget.can_ever(request) is None
            budget.take(request)
            taken.append(request)
        elif taken:
            budget.give(taken.pop(data.draw(st.integers(0, len(taken) - 1))))
        budget.check_integrity()
        for name in ("cpu", "memory", "gpu"):
            assert sum(getattr(each, name) for each in taken) <= getattr(total, name) + 1e-4
    for request in taken:
        budget.give(request)
    budget.check_integrity()
    assert budget.fits(total)


@pytest.mark.parametrize(("part", "times"), [(0.1, 10), (0.07, 100), (1 / 3, 3), (1 / 7, 7), (0.2, 5)])
def test_parts_of_a_device_fill_it_exactly(part: float, times: int) -> None:
    """As floats, 0.1 taken and given back a few times leaves a device that is never whole again."""
    total = ResourceConfig(cpu=round(part * times), gpu=0)
    budget, request = Budget(total), ResourceConfig(cpu=part)
    for _ in range(100):
        for _ in range(times):
            budget.take(request)
        assert not budget.fits(request)
        for _ in range(times):
            budget.give(request)
    assert budget.fits(total)


def test_what_does_not_fit_is_not_taken_and_what_was_not_taken_is_not_given() -> None:
    budget, one = Budget(ResourceConfig(cpu=1)), ResourceConfig(cpu=1)
    budget.take(one)
    with pytest.raises(ArgumentError, match="does not fit"):
        budget.take(one)
    budget.give(one)
    for request in (one, ResourceConfig(cpu=0.5)):
        with pytest.raises(ArgumentError, match="given back, but was not taken"):
            budget.give(request)
    budget.check_integrity()


def test_integrity_finds_a_sum_that_is_wrong() -> None:
    budget = Budget(ResourceConfig(cpu=2))
    budget.take(ResourceConfig(cpu=1))
    budget._taken = Counter()
    with pytest.raises(AssertionError, match="are not"):
        budget.check_integrity()


def test_a_thread_client_has_what_the_machine_has_unless_told() -> None:
    has = ThreadClient(1).resources()
    assert (has.cpu, has.memory, has.gpu) == (os.cpu_count(), psutil.virtual_memory().total, 0)
    told = ResourceConfig(cpu=3, tags={"disk": 1})
    assert ThreadClient(1, resources=told).resources() is told


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "2", None])
def test_a_count_is_a_whole_number_of_at_least_one(value: object) -> None:
    with pytest.raises(ArgumentError, match=r"^steps: expected a whole number of at least 1, got"):
        check_count("steps", value)
    assert check_count("steps", 1) == 1
