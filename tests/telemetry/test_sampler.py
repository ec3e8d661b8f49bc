from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from treadle.errors import ArgumentError
from treadle.telemetry import ResourceSampler, ResourcesSampled


def test_it_samples_at_its_start_in_between_and_at_its_end() -> None:
    """A run shorter than the interval has its memory measured too."""
    samples: list[ResourcesSampled] = []
    enough = threading.Event()

    def take(sample: ResourcesSampled) -> None:
        samples.append(sample)
        if len(samples) >= 3:
            enough.set()

    sampler = ResourceSampler(0.01, take)
    sampler.start()
    assert len(samples) >= 1
    assert enough.wait(30)
    sampler.stop()
    seen = len(samples)
    sampler.stop()
    assert len(samples) == seen
    assert not sampler.running
    assert sampler.peak_rss_bytes == max(each.rss_bytes for each in samples) > 1_000_000
    assert [each.cpu_seconds for each in samples] == sorted(each.cpu_seconds for each in samples)


def test_stopping_does_not_wait_for_the_interval() -> None:
    sampler = ResourceSampler(3600, lambda _: None)
    sampler.start()
    before = time.monotonic()
    sampler.stop()
    assert time.monotonic() - before < 30
    assert not sampler.running


def test_memory_and_time_of_children_count_also_after_they_ended() -> None:
    """Most of the work of a run with worker processes is done in children."""
    samples: list[ResourcesSampled] = []
    sampler = ResourceSampler(3600, samples.append)
    sampler.start()
    script = "x = bytearray(60_000_000); sum(range(8_000_000)); print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        sampler._sample()
        child.communicate("\n")
    sampler.stop()
    first, during, last = samples
    assert during.processes == first.processes + 1
    assert during.rss_bytes > first.rss_bytes + 50_000_000
    assert last.processes == first.processes
    assert last.cpu_seconds >= during.cpu_seconds > first.cpu_seconds
    assert sampler.peak_rss_bytes == during.rss_bytes


def test_an_error_of_the_listener_ends_the_sampling_and_is_raised_by_stop() -> None:
    """An error in a thread that nobody looks at would be lost."""
    calls: list[int] = []

    def fail(_: ResourcesSampled) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise OSError("the disk is full")

    sampler = ResourceSampler(0.01, fail)
    sampler.start()
    sampler._thread.join(30)
    with pytest.raises(OSError, match="the disk is full"):
        sampler.stop()
    sampler.stop()
    assert len(calls) == 2


def test_an_error_at_the_start_leaves_no_thread() -> None:
    sampler = ResourceSampler(0.01, lambda _: [][0])
    with pytest.raises(IndexError):
        sampler.start()
    assert not sampler.running


@pytest.mark.parametrize("interval", [0, -1, float("nan")])
def test_an_interval_that_is_none_is_refused(interval: float) -> None:
    with pytest.raises(ArgumentError, match="interval: expected more than 0 seconds, got"):
        ResourceSampler(interval, lambda _: None)
