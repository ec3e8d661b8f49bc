"""A mailbox: one call at a time, in order, and nothing held while none runs."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from treadle.fray.mailbox import Mailbox


def test_calls_are_let_through_one_by_one() -> None:
    begun: list[int] = []

    def begin(call: int) -> bool:
        begun.append(call)
        return True

    box = Mailbox(begin)
    for call in range(3):
        box.put(call)
    assert begun == [0]
    box.ended()
    assert begun == [0, 1]
    assert box.clear() == [2]
    box.ended()
    box.put(3)
    assert begun == [0, 1, 3]


def test_calls_with_nothing_to_do_are_no_depth() -> None:
    gone: list[int] = []

    def begin(call: int) -> bool:
        if call:
            gone.append(call)
        return not call

    box = Mailbox(begin)
    for call in range(10_000):
        box.put(call)
    box.ended()
    assert gone == list(range(1, 10_000))
    box.put(0)
    assert box.clear() == []


def test_many_threads_may_put_while_calls_end() -> None:
    running: SimpleQueue[int] = SimpleQueue()

    def begin(call: int) -> bool:
        assert running.empty(), "one at a time"
        running.put(call)
        return True

    box = Mailbox(begin)
    starts = (0, 1000, 2000)

    def put_all(start: int) -> None:
        for number in range(500):
            box.put(start + number)

    threads = [threading.Thread(target=put_all, args=(start,)) for start in starts]
    for each in threads:
        each.start()
    order = []
    for _ in range(500 * len(starts)):
        order.append(running.get(timeout=20))
        box.ended()
    for each in threads:
        each.join()
    for start in starts:
        assert [call for call in order if start <= call < start + 1000] == [start + n for n in range(500)]
