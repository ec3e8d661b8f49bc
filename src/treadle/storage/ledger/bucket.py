"""Small objects under one fsspec URL: made exclusively, read, listed, removed. Nothing is cached."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from treadle.errors import LedgerError
from treadle.storage.reach import find, is_s3, path_at, reach

T = TypeVar("T")

_EXISTS = frozenset({"PreconditionFailed", "412"})
_PROBE = ".treadle/exclusive.json"
# In memory, fsspec looks whether a file exists and makes it in two steps.
_ONE_AT_A_TIME = threading.Lock()


class Bucket:
    """The objects below `url`, by paths relative to it. What the storage raises becomes a LedgerError.

    An outage is ridden out; see `Outage`. Not so by `hasty`: the same bucket, each request tried once.
    """

    def __init__(self, url: str, *, patient: bool = True) -> None:
        self.url = url
        self._patient = patient
        self._is_exclusive = False

    def hasty(self) -> Bucket:
        """The same objects, for whoever tries again by itself."""
        made = Bucket(self.url, patient=False)
        made._is_exclusive = True  # nobody goes on with what nobody has begun
        return made

    def patience(self) -> float:
        """For how many seconds an outage is ridden out."""
        return reach(self.url).outage.patience

    def watch_time(self) -> float:
        """See `Outage`."""
        return reach(self.url).outage.watch_time()

    def create(self, path: str, content: bytes) -> bool:
        """Make an object, whole or not at all; False when there is one that is not this one.

        Raises:
            LedgerError: also when this storage does not keep two from making one object.
        """
        if not self._is_exclusive:
            self._check_exclusive()
        made = self._tried("create", path, lambda fs, whole: _made(fs, whole, content))
        # After a lost answer the storage refuses a second try; the content tells whose object it is.
        return made or self.read(path) == content

    def write(self, path: str, content: bytes) -> None:
        """Make or replace an object, whole or not at all."""
        self._tried("write", path, lambda fs, whole: _write(fs, whole, content))

    def read(self, path: str) -> bytes | None:
        """What is in the object; None when there is none."""
        return self._tried("read", path, _cat)

    def find(self, folder: str) -> list[str]:
        """The path of every object below a folder, relative to it."""
        return self._tried("list", folder, _find)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error."""
        for path in paths:
            self._tried("remove", path, _remove)

    def _check_exclusive(self) -> None:
        """See that of two who make one object, one is refused. A store that was asked before refuses at once.

        Raises:
            LedgerError: it takes both, as old servers do that do not know the condition.
        """
        if not _is_sure(self.url) and all(self._probe() for _ in range(2)):
            raise LedgerError(
                f"{self.url}/{_PROBE}: cannot keep a ledger here: two who make one object both succeed, so "
                "two runners would do the same work and commit over each other: expected a storage with "
                "conditional writes (If-None-Match), as S3, GCS, Azure and MinIO have; see its version and "
                "its settings"
            )
        self._is_exclusive = True

    def _probe(self) -> bool:
        content = secrets.token_bytes(16)
        return self._tried("create", _PROBE, lambda fs, whole: _made(fs, whole, content))

    def _tried(self, operation: str, path: str, act: Callable[[Any, str], T]) -> T:
        """What `act` gives for the file system and the whole path of an object in it."""
        url = f"{self.url.rstrip('/')}/{path}"
        return reach(self.url).ask(
            lambda fs: act(fs, f"{path_at(fs, self.url)}/{path}"),
            operation,
            url,
            LedgerError,
            patient=self._patient,
        )


def _is_sure(url: str) -> bool:
    return "://" not in url or url.startswith(("memory://", "file://", "local://"))


def _protocol(fs: Any) -> str:
    first = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    return str(first)


def _made(fs: Any, path: str, content: bytes) -> bool:
    """Whether the object was made; False when there was one."""
    make = {"file": _link, "memory": _create_in_memory}.get(_protocol(fs), _create)
    try:
        make(fs, path, content)
    except FileExistsError:
        return False
    except OSError as error:
        if _code(error) in _EXISTS:
            return False
        raise
    return True


def _code(error: OSError) -> str:
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _create(fs: Any, path: str, content: bytes) -> None:
    if is_s3(fs):
        fs.pipe_file(path, content, mode="create")
        return
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


def _write(fs: Any, path: str, content: bytes) -> None:
    if _protocol(fs) == "file":
        _staged(path, content).replace(path)
    else:
        fs.pipe_file(path, content)


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


def _cat(fs: Any, path: str) -> bytes | None:
    try:
        return bytes(fs.cat_file(path))
    except FileNotFoundError:
        return None


def _find(fs: Any, folder: str) -> list[str]:
    start = folder.rstrip("/")
    return [each[len(start) + 1 :] for each in find(fs, start)]


def _remove(fs: Any, path: str) -> None:
    try:
        fs.rm_file(path)
    except FileNotFoundError:
        return
