"""A server between a client and an object store, on loopback, that can fail in every way a network can.

It counts the requests it sees, from 1. `fault(at, kind)` breaks the next ones, `cut` and `mend` the whole.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_RESET = struct.pack("ii", 1, 0)  # closing such a socket resets the connection
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "content-length"})


class Fault(StrEnum):
    """What happens to a request."""

    RESET = "reset"  # nothing reaches the store
    LOST_ANSWER = "lost answer"  # the store has done it, and the client never hears of it
    TORN_ANSWER = "torn answer"  # half of the answer comes
    ERROR_AFTER = "error after"  # the store has done it, and says 500
    STALL = "stall"  # nothing reaches the store, and nothing comes back
    STALL_AFTER = "stall after"  # the store has done it, and nothing comes back
    ERROR_500 = "500"
    ERROR_503 = "503"
    SLOW_DOWN = "SlowDown"


_AFTER = frozenset({Fault.LOST_ANSWER, Fault.TORN_ANSWER, Fault.ERROR_AFTER, Fault.STALL_AFTER})
_REFUSALS = {
    Fault.ERROR_AFTER: (500, "InternalError"),
    Fault.ERROR_500: (500, "InternalError"),
    Fault.ERROR_503: (503, "ServiceUnavailable"),
    Fault.SLOW_DOWN: (503, "SlowDown"),
}


@dataclass
class Seen:
    """One request: its number, and what came of it (an HTTP status, or the fault)."""

    number: int
    method: str
    path: str
    end: str = ""


@dataclass
class Proxy:
    """Forwards to the server at `target`, a URL; `url` is its own."""

    target: str
    seen: list[Seen] = field(default_factory=list)
    delay: float = 0.0  # seconds that each answer takes longer
    ignores_conditions: bool = False  # as old stores do: `If-None-Match` never reaches the server
    choose: Callable[[Seen], Fault | None] = lambda _: None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._condition = threading.Lock()
        self.open_sockets: set[socket.socket] = set()
        self._released = threading.Event()
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self.mend()

    @property
    def url(self) -> str:
        """Where clients find it; the same after a cut."""
        return f"http://127.0.0.1:{self._port}"

    def cut(self) -> None:
        """Refuse connections, and reset those there are."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        for each in tuple(self.open_sockets):
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.shutdown(socket.SHUT_RD)

    def mend(self) -> None:
        """Listen again."""
        if self._server is None:
            self._server = _Server(("127.0.0.1", self._port), type("Handler", (_Handler,), {"proxy": self}))
            self._port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Cut meanwhile."""
        self.cut()
        try:
            yield
        finally:
            self.mend()

    def cut_for(self, seconds: float) -> threading.Thread:
        """Cut now, and mend by a timer, whose thread is returned."""
        self.cut()
        timer = threading.Timer(seconds, self.mend)
        timer.start()
        return timer

    def fault(self, at: int, kind: Fault, burst: int = 1) -> None:
        """Break `burst` requests from the `at`th from now on, which is 1."""
        first = len(self.seen) + at
        self.choose = lambda seen: kind if first <= seen.number < first + burst else None

    def well(self) -> None:
        """No more faults; who waits for an answer gets a reset."""
        self.choose = lambda _: None
        self._released.set()
        self._released = threading.Event()

    def close(self) -> None:
        """The end."""
        self.well()
        self.cut()

    def begin(self, method: str, path: str) -> Seen:
        """Note a request."""
        with self._lock:
            self.seen.append(Seen(len(self.seen) + 1, method, path))
            return self.seen[-1]

    def wait_to_be_released(self) -> None:
        """Say nothing, for as long as the fault lasts."""
        self._released.wait(60)

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any, bytes]:
        """Status, headers and content of the answer of the server."""
        where = urlsplit(self.target)
        server = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
        is_conditional = any(each.lower() == "if-none-match" for each in headers)
        try:
            # The server of the tests looks and makes in two steps; a real one does it in one.
            with self._condition if is_conditional else contextlib.nullcontext():
                server.request(method, path, body or None, headers)
                answer = server.getresponse()
                return answer.status, answer.headers, answer.read()
        finally:
            server.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, mostly killed, is no error."""


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.proxy.open_sockets.add(self.connection)

    def finish(self) -> None:
        self.proxy.open_sockets.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def do_any(self) -> None:
        seen = self.proxy.begin(self.command, self.path)
        body = self._body()
        fault = self.proxy.choose(seen)
        seen.end = fault or ""
        answer = None
        if fault is None or fault in _AFTER:
            answer = self.proxy.forward(self.command, self.path, self._headers(), body)
            if self.proxy.delay:
                time.sleep(self.proxy.delay)
        if fault is None and answer is not None:
            seen.end = str(answer[0])
            self._answer(*answer)
        else:
            self._fail(Fault(str(fault)), answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any  # noqa: N815 - the names that http.server asks for

    def log_message(self, *args: Any) -> None:
        pass

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self._whole(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self._whole(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _whole(self, size: int) -> bytes:
        content = self.rfile.read(size)
        if len(content) < size:  # cut in the middle: no server takes that for a request
            raise ConnectionError
        return content

    def _headers(self) -> dict[str, str]:
        dropped = {*_HOP_BY_HOP, *(["if-none-match"] if self.proxy.ignores_conditions else [])}
        return {key: value for key, value in self.headers.items() if key.lower() not in dropped}

    def _answer(self, status: int, headers: Any, content: bytes, torn: bool = False) -> None:
        self.send_response_only(status)
        for key, value in headers.items():
            if key.lower() not in _HOP_BY_HOP:
                self.send_header(key, value)
        size = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", size)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if torn else content)
        self.wfile.flush()

    def _fail(self, fault: Fault, answer: Any) -> None:
        if fault in _REFUSALS:
            status, code = _REFUSALS[fault]
            self._answer(status, {"Content-Type": "application/xml"}, _refusal(code))
            return
        if fault is Fault.TORN_ANSWER and len(answer[2]) > 1:
            status, headers, content = answer
            self._answer(status, headers, content, torn=True)
        if fault in (Fault.STALL, Fault.STALL_AFTER):
            self.proxy.wait_to_be_released()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close_connection = True


def _refusal(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


def at_random(chance: random.Random, share: float) -> Callable[[Seen], Fault | None]:
    """Faults for `Proxy.choose`: this share of the requests, each of any kind but the stalls."""
    kinds = [each for each in Fault if not each.startswith("stall")]
    lock = threading.Lock()

    def choose(_seen: Seen) -> Fault | None:
        with lock:
            return chance.choice(kinds) if chance.random() < share else None

    return choose
