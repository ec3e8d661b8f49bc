"""A web server of this machine, whose faults the tests choose."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Site:
    """What the server has and how it behaves. `asked` are the requests: method, path, range."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    promise_ranges: bool | None = None
    head: bool = True
    empty_head: bool = False
    shift: int = 0  # the parts that are sent begin so much later than those asked for
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None
    length: str = "told"  # told, chunked, or untold (the end of the connection is the end)
    status: int | None = None
    redirect: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(site: Site) -> Iterator[str]:
    """The URL of the site while it is served."""

    class Handler(_Handler):
        here = site

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield site.url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes before all has come is none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    here: Site
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        pass

    def do_HEAD(self) -> None:
        if not self.here.head:
            self._status(405)
            return
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _status(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, body: bool) -> None:
        site, path = self.here, self.path.partition("?")[0]
        wanted = self.headers.get("Range")
        site.asked.append((self.command, path, wanted))
        if path in site.redirect:
            self.send_response(302)
            self.send_header("Location", site.redirect[path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif site.status is not None or path not in site.files:
            self._status(site.status or 404)
        else:
            self._send(site.files[path], wanted, body)

    def _send(self, whole: bytes, wanted: str | None, body: bool) -> None:
        site, content = self.here, whole
        if wanted and site.ranges:
            asked, _, last = wanted.removeprefix("bytes=").partition("-")
            first = int(asked) + site.shift
            content = whole[first : int(last) + 1 if last else None]
            self.send_response(206)
            end = first + len(content) - 1
            self.send_header("Content-Range", f"bytes {first}-{end}/{len(whole)}")
        else:
            self.send_response(200)
        if site.ranges if site.promise_ranges is None else site.promise_ranges:
            self.send_header("Accept-Ranges", "bytes")
        for name, value in site.headers.items():
            self.send_header(name, value)
        self._send_body(content, body)

    def _send_body(self, content: bytes, body: bool) -> None:
        site = self.here
        if site.length == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        elif site.length == "told" or not body:
            self.send_header("Content-Length", str(len(content) if body or not site.empty_head else 0))
        else:
            self.close_connection = True
        self.end_headers()
        if not body:
            return
        sent = content if site.cut_at is None else content[: site.cut_at]
        if site.length == "chunked":
            self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent) if sent else b"")
            self.wfile.write(b"0\r\n\r\n" if site.cut_at is None else b"")
        else:
            self.wfile.write(sent)
        if site.cut_at is not None:
            self.close_connection = True
