"""How Prometheus gets the metrics of a run: the settings, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

from treadle.errors import ArgumentError

Mode = Literal["pull", "push", "textfile"]


@dataclass(frozen=True)
class PrometheusSpec:
    """How Prometheus gets the metrics of a run; see the section `metrics.prometheus` of a manifest.

    `interval` and `timeout` are seconds: between two pushes or writes, and for one push; the end of a run
    waits for twice the timeout at most. Raises ArgumentError for settings that do not go together.
    """

    mode: Mode
    address: str = "127.0.0.1:0"
    url: str | None = None
    path: str | None = None
    job: str = "treadle"
    interval: float = 5.0
    timeout: float = 5.0

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ArgumentError(f"mode: expected one of {', '.join(get_args(Mode))}, got {self.mode!r}")
        self._check_belongs("url", self.url, "push")
        self._check_belongs("path", self.path, "textfile")
        for name, seconds in (("interval", self.interval), ("timeout", self.timeout)):
            if not (seconds > 0 and math.isfinite(seconds)):
                raise ArgumentError(f"{name}: expected more than 0 seconds, got {seconds}")
        if not self.job:
            raise ArgumentError("job: expected a name, got an empty one")
        self._check_place()

    @property
    def host(self) -> str:
        """The host of `address`, without the brackets of an IPv6 address."""
        return self.address.rpartition(":")[0].removeprefix("[").removesuffix("]")

    @property
    def port(self) -> int:
        """The port of `address`; 0 is any that is free."""
        return int(self.address.rpartition(":")[2])

    def _check_belongs(self, name: str, value: str | None, mode: Mode) -> None:
        if (value is not None) != (self.mode == mode):
            given = "none was given" if value is None else f"got {value!r}"
            raise ArgumentError(
                f"{name}: mode {mode} needs it and no other has it; mode {self.mode}, {given}"
            )

    def _check_place(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise ArgumentError(f"address: expected HOST:PORT, got {self.address!r}")
        if self.url is not None and not _is_web(self.url):
            raise ArgumentError(f"url: expected that of a push gateway, http://HOST:PORT, got {self.url!r}")
        if self.path is not None and (not self.path or "://" in self.path):
            raise ArgumentError(f"path: expected a local file, got {self.path!r}")


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        return False
