"""The storages that stores lie on, each reached in one way: with limits on time, and through an outage.

treadle has file systems of its own, apart from those that the functions of steps get from fsspec: theirs have
the settings that fsspec gives them, and keep listings; these ask the storage each time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import fsspec

from treadle.errors import ArtifactError, MissingExtraError
from treadle.storage.outage import Outage
from treadle.storage.passing import is_passing
from treadle.storage.seconds import seconds_setting

T = TypeVar("T")

OUTAGE_SECONDS = 30.0
ANSWER_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_CONNECTIONS = 64
_LOOKS = 100
_S3 = ("s3", "s3a")
_REACHES: dict[tuple[str, int], Reach] = {}


class Reach:
    """The way to the storage `root`: a protocol with a bucket or host, empty for the disk. Safe for threads.

    Requests of S3 are made once each by its client, which would else try every one for minutes by itself.
    """

    def __init__(self, root: str) -> None:
        self.outage = Outage(seconds_setting("outage_seconds", OUTAGE_SECONDS, least=0.0))
        self.root = root
        self._opening = threading.Lock()
        self._fs: Any = None

    def ask(
        self,
        act: Callable[[Any], T],
        operation: str,
        url: str,
        kind: type[ArtifactError] = ArtifactError,
        *,
        patient: bool = True,
    ) -> T:
        """What `act` gives for the file system; it may be called several times.

        Raises:
            ArtifactError: of that `kind`: the storage was out of reach for too long, or refuses.
            MissingExtraError: the package for this kind of storage is not installed.
        """
        try:
            return self.outage.ride_out(lambda: act(self.fs()), patient=patient)
        except Exception as error:  # storages raise what they like
            if isinstance(error, ImportError) and self.root.startswith(tuple(f"{each}://" for each in _S3)):
                raise MissingExtraError("s3fs", "s3", f"a store at {self.root}") from error
            raise kind(f"{url}: {_WHAT[kind is ArtifactError]}: {operation}: {self._why(error)}") from error

    def fs(self) -> Any:
        """The file system."""
        if self._fs is None:
            with self._opening:  # one for all: making a client takes long
                if self._fs is None:
                    self._fs = _opened(self.root)
        return self._fs

    def _why(self, error: Exception) -> str:
        said = f"{type(error).__name__}: {error}"
        if not is_passing(error):
            return (
                f"{said}; see that the storage can be reached and that this user may write there, "
                "then run again"
            )
        return (
            f"{said}; the storage was out of reach for {self.outage.lasted():.1f} s, and is waited for up to "
            f"{self.outage.patience:g} s (outage_seconds); see that it can be reached, then run again: "
            "what is done stays done"
        )


_WHAT = ("cannot use the ledger of the store", "cannot use the store")


def reach(url: str) -> Reach:
    """The way to the storage of a URL or path; one for all threads of a process."""
    key = (root_of(url), os.getpid())  # connections are those of one process
    found = _REACHES.get(key)
    return found if found is not None else _REACHES.setdefault(key, Reach(key[0]))


def root_of(url: str) -> str:
    """The protocol with the bucket or host of a URL; empty for a path."""
    protocol, mark, rest = url.partition("://")
    return f"{protocol}://{rest.partition('/')[0]}" if mark else ""


def forget_reaches() -> None:
    """Connect anew from now on, with the settings that then hold."""
    _REACHES.clear()


def path_at(fs: Any, url: str) -> str:
    """The path in the file system."""
    return str(fs._strip_protocol(url)).rstrip("/")


def find(fs: Any, folder: str) -> dict[str, dict[str, Any]]:
    """Every object below a folder, with what the listing says of it, by its path in the file system."""
    start, _, last = folder.rpartition("/")
    if is_s3(fs) and start:
        # Three requests, when there is nothing, become one: a prefix is not looked for as an object too.
        return dict(fs.find(start, prefix=f"{last}/", detail=True))
    return _found(fs, folder, 1 if fs.protocol != "memory" else _LOOKS)


def _found(fs: Any, folder: str, looks: int) -> dict[str, dict[str, Any]]:
    try:
        return dict(fs.find(folder, detail=True))
    except RuntimeError:  # in memory it goes through a dictionary, which another thread has just changed
        if looks == 1:
            raise
        return _found(fs, folder, looks - 1)


def is_s3(fs: Any) -> bool:
    """Whether it is S3, or speaks like it."""
    return "s3" in (fs.protocol if isinstance(fs.protocol, tuple | list) else (fs.protocol,))


def _opened(root: str) -> Any:
    protocol = root.partition("://")[0]
    options = {"skip_instance_cache": True, "use_listings_cache": False}
    if protocol not in _S3:
        return fsspec.core.url_to_fs(root or "/", **options)[0]
    fs = fsspec.core.url_to_fs(root, **options, config_kwargs=_s3_config(protocol), max_concurrency=1)[0]
    fs.retries = 1
    return fs


def _s3_config(protocol: str) -> dict[str, Any]:
    given = fsspec.config.conf.get(protocol, {}).get("config_kwargs", {})
    return {
        "connect_timeout": _CONNECT_SECONDS,
        "read_timeout": seconds_setting("answer_seconds", ANSWER_SECONDS),
        "max_pool_connections": _CONNECTIONS,
        **given,
        "retries": {"total_max_attempts": 1},
    }
