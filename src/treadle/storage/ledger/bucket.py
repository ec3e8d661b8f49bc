"""Small objects under one fsspec URL: made exclusively, read, listed, removed. Nothing is cached."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import fsspec

from treadle.errors import LedgerError, MissingExtraError

T = TypeVar("T")

_TRIES = 3
_S3 = ("s3://", "s3a://")
_EXISTS = frozenset({"PreconditionFailed", "412"})
# In memory, fsspec looks whether a file exists and makes it in two steps.
_ONE_AT_A_TIME = threading.Lock()


class Bucket:
    """The objects below `url`, by paths relative to it. What the storage raises becomes a LedgerError."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._open: tuple[Any, str] | None = None

    def create(self, path: str, content: bytes) -> bool:
        """Make an object, whole or not at all; False when there is one that is not this one."""
        fs, root = self._storage()
        make = {"file": _link, "memory": _create_in_memory}.get(_protocol(fs), _create)
        made = self._tried(path, lambda: _made(make, fs, f"{root}/{path}", content))
        # After a lost answer the storage refuses a second try; the content tells whose object it is.
        return made or self.read(path) == content

    def write(self, path: str, content: bytes) -> None:
        """Make or replace an object, whole or not at all."""
        fs, root = self._storage()
        write = _replace if _protocol(fs) == "file" else _pipe
        self._tried(path, lambda: write(fs, f"{root}/{path}", content))

    def read(self, path: str) -> bytes | None:
        """What is in the object; None when there is none."""
        fs, root = self._storage()
        return self._tried(path, lambda: _cat(fs, f"{root}/{path}"))

    def find(self, folder: str) -> list[str]:
        """The paths of every object below a folder, relative to it."""
        fs, root = self._storage()
        start = f"{root}/{folder}".rstrip("/")
        found = self._tried(folder, lambda: fs.find(start))
        return [each[len(start) + 1 :] for each in found]

    def remove(self, paths: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error."""
        fs, root = self._storage()
        for path in paths:
            self._tried(path, lambda path=path: _remove(fs, f"{root}/{path}"))  # type: ignore[misc]

    def reset(self) -> None:
        """In a forked child: the connections are the parent's."""
        self._open = None

    def _storage(self) -> tuple[Any, str]:
        if self._open is None:
            self._open = self._tried("", lambda: _opened(self.url))
        return self._open

    def _tried(self, path: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except Exception as error:  # storages raise what they like
            if isinstance(error, ImportError) and self.url.startswith(_S3):
                raise MissingExtraError("s3fs", "s3", f"a store at {self.url}") from error
            where = f"{self.url.rstrip('/')}/{path}"
            raise LedgerError(
                f"{where}: cannot use the ledger of the store: {type(error).__name__}: {error}; "
                "see that the storage can be reached and that this user may write there, then run again"
            ) from error


def _opened(url: str) -> tuple[Any, str]:
    fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
    return fs, root.rstrip("/")


def _protocol(fs: Any) -> str:
    first = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    return str(first)


def _made(make: Callable[[Any, str, bytes], None], fs: Any, path: str, content: bytes) -> bool:
    for left in reversed(range(_TRIES)):
        try:
            make(fs, path, content)
        except FileExistsError:
            return False
        except OSError as error:
            code = _code(error)
            if code in _EXISTS:
                return False
            # S3 says this while another request on the same object is under way.
            if code != "ConditionalRequestConflict" or not left:
                raise
        else:
            return True
    return False


def _code(error: OSError) -> str:
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _create(fs: Any, path: str, content: bytes) -> None:
    # Without `with`, which would publish half of it when the write fails.
    file = fs.open(path, "xb")
    file.write(content)
    file.close()


def _create_in_memory(fs: Any, path: str, content: bytes) -> None:
    with _ONE_AT_A_TIME:
        fs.pipe_file(path, content, mode="create")


def _link(_fs: Any, path: str, content: bytes) -> None:
    """Exclusive, and never seen half written: a file made with O_EXCL is there before its content."""
    staged = _staged(path, content)
    try:
        os.link(staged, path)
    finally:
        staged.unlink()


def _replace(_fs: Any, path: str, content: bytes) -> None:
    _staged(path, content).replace(path)


def _staged(path: str, content: bytes) -> Path:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_name(f".staging-{secrets.token_hex(8)}")
    try:
        staged.write_bytes(content)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    return staged


def _pipe(fs: Any, path: str, content: bytes) -> None:
    fs.pipe_file(path, content)


def _cat(fs: Any, path: str) -> bytes | None:
    try:
        return bytes(fs.cat_file(path))
    except FileNotFoundError:
        return None


def _remove(fs: Any, path: str) -> None:
    try:
        fs.rm_file(path)
    except FileNotFoundError:
        return
