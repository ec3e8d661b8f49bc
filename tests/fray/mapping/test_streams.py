"""A stream of any length in bounded memory, measured in a process of its own."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys

from treadle.fray.mapping.job_map import job_map

workers, count = int(sys.argv[2]), int(sys.argv[3])


def unit(number):
    return bytes(100)


def main():
    if sys.argv[1] == "threads":
        from treadle.fray import ThreadClient as make
    else:
        from treadle.fray.processes import ProcessClient as make
    with make(workers) as client:
        done = sum(1 for _ in job_map(unit, (number for number in range(count)), client=client))
    print(done, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
"""


def _peak(backend: str, count: int) -> int:
    """In KiB on Linux, where a mapping of 100,000 results of 100 bytes is some 15,000."""
    words = [sys.executable, "-c", SCRIPT, backend, "2", str(count)]
    ran = subprocess.run(words, check=True, capture_output=True, text=True, timeout=100)
    done, peak = ran.stdout.split()
    assert int(done) == count
    return int(peak)


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_a_long_stream_takes_no_more_memory_than_a_short_one(backend: str) -> None:
    assert _peak(backend, 200_000) < _peak(backend, 20_000) + 12_000
