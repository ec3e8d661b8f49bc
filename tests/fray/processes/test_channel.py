"""Messages arrive whole, in order, whatever the socket makes of them."""

from __future__ import annotations

import random
import socket
import threading

import pytest

from treadle.fray.processes.channel import Channel, Kind, Message


def pair() -> tuple[Channel, Channel, socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs), ours


def received(channel: Channel, count: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < count:
        found += channel.receive() or []
    return found


def test_messages_of_any_length_arrive_in_order() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    lengths = [0, 1, 65_519, 65_520, 65_536, 65_537, *(draw.randrange(200_000) for _ in range(100))]
    draw.shuffle(lengths)
    sent = [Message(Kind.CALL, place, draw.randbytes(length)) for place, length in enumerate(lengths)]
    one, other, _ = pair()

    def send_all() -> None:
        for message in sent:
            one.send(*message)

    sending = threading.Thread(target=send_all)
    sending.start()
    assert received(other, len(sent)) == sent
    sending.join()
    one.close()
    other.close()


def test_a_sender_that_must_not_wait_keeps_the_rest() -> None:
    one, other, end = pair()
    end.setblocking(False)
    sent = [Message(Kind.CALL, place, bytes([place]) * 300_000) for place in range(20)]
    for message in sent:
        one.send(*message)
    unsent = one.has_unsent
    assert unsent
    found: list[Message] = []
    while len(found) < len(sent):
        one.flush()
        found += other.receive() or []
    assert found == sent
    assert not one.has_unsent
    one.close()
    other.close()


def test_the_end_is_told_once_all_is_read() -> None:
    one, other, _ = pair()
    assert other.receive() is None
    one.send(Kind.READY, 7)
    one.close()
    assert other.receive() == [Message(Kind.READY, 7, b"")]
    with pytest.raises(EOFError):
        other.receive()
    with pytest.raises(OSError):
        other.send(Kind.READY, 1)
    other.close()


def test_an_end_in_the_middle_of_a_message() -> None:
    one, other, end = pair()
    end.setblocking(False)
    one.send(Kind.CALL, 1, bytes(10_000_000))
    one.close()
    with pytest.raises(EOFError):
        received(other, 1)
    other.close()
