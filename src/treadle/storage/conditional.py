"""One object of a storage, replaced or removed only if it is still the one that was read."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import fsspec.asyn

from treadle.errors import ArgumentError, ArtifactError
from treadle.storage.reach import is_s3, path_at, reach, root_of

T = TypeVar("T")

_REFUSED = frozenset(("PreconditionFailed", "412", "NoSuchKey", "404"))
_PROBED: set[str] = set()
_ONE_AT_A_TIME = threading.Lock()  # in memory the condition and the write are two steps


class Tagged(NamedTuple):
    """What is in an object, and the tag that it has as long as it is not replaced."""

    content: bytes
    tag: str


class ConditionalObject:
    """The object at `url`. Outages are ridden out, and what the storage raises becomes an ArtifactError.

    The content that is written must differ each time, so that after a lost answer it tells who wrote it.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def check(self) -> None:
        """See that this storage keeps the conditions, by writing an object beside this one and removing it.

        Raises:
            ArgumentError: it is of a kind for which they are not known here.
            ArtifactError: it does not keep them, as old servers do, or is out of reach.
        """
        check_kind(self.url)
        if root_of(self.url) in _PROBED or self.url.startswith("memory://"):
            return
        probe = ConditionalObject(f"{self.url}.probe-{secrets.token_hex(4)}")
        try:
            if not probe._keeps_conditions():
                raise ArtifactError(
                    f"{self.url}: cannot write an output here: of two who write one object both succeed, so "
                    "one would be lost without notice: expected a storage with conditional writes (If-Match, "
                    "If-None-Match), as S3 and MinIO have; see its version and its settings"
                )
        finally:
            probe.remove_always()
        _PROBED.add(root_of(self.url))

    def read(self) -> Tagged | None:
        """What is there; None when nothing is."""
        return self._ask("read", lambda fs, path: _kind(fs).read(fs, path))

    def put(self, content: bytes, over: str | None) -> bool:
        """Write it if the object still has the tag `over`, None for no object; False when it has not."""
        if self._ask("write", lambda fs, path: _kind(fs).put(fs, path, content, over)):
            return True
        found = self.read()
        return found is not None and found.content == content

    def remove(self, tag: str) -> bool:
        """Remove it if it still has that tag; False when another is there."""
        if self._ask("remove", lambda fs, path: _kind(fs).remove(fs, path, tag)):
            return True
        return self.read() is None

    def remove_always(self) -> None:
        """Remove it, if it is there."""
        self._ask("remove", _remove)

    def _keeps_conditions(self) -> bool:
        first, second = (secrets.token_bytes(16) for _ in range(2))
        return self.put(first, None) and not self.put(second, None) and not self.put(second, '"0"')

    def _ask(self, operation: str, act: Callable[[Any, str], T]) -> T:
        return reach(self.url).ask(lambda fs: act(fs, path_at(fs, self.url)), operation, self.url)


def check_kind(url: str) -> None:
    """Raises ArgumentError for a kind of storage where nothing known keeps two writers apart."""
    protocol = url.partition("://")[0]
    if protocol not in ("s3", "s3a", "memory"):
        raise ArgumentError(
            f"{url}: cannot write an output to {protocol}://, where nothing known keeps two writers apart: "
            "expected a local path or s3:// (any server that speaks like S3); write there, and copy it"
        )


class _S3:
    @staticmethod
    def read(fs: Any, path: str) -> Tagged | None:
        try:
            return fsspec.asyn.sync(fs.loop, _get, fs, *_place(fs, path))  # type: ignore[no-any-return]
        except FileNotFoundError:
            return None

    @staticmethod
    def put(fs: Any, path: str, content: bytes, over: str | None) -> bool:
        condition = {"IfNoneMatch": "*"} if over is None else {"IfMatch": over}
        return _accepted(fs, "put_object", path, Body=content, **condition)

    @staticmethod
    def remove(fs: Any, path: str, tag: str) -> bool:
        return _accepted(fs, "delete_object", path, IfMatch=tag)


async def _get(fs: Any, bucket: str, key: str) -> Tagged:
    answer = await fs._call_s3("get_object", Bucket=bucket, Key=key)
    try:
        return Tagged(await answer["Body"].read(), answer["ETag"])
    finally:
        answer["Body"].close()


def _accepted(fs: Any, call: str, path: str, **said: object) -> bool:
    bucket, key = _place(fs, path)
    try:
        fs.call_s3(call, Bucket=bucket, Key=key, **said)
    except OSError as error:
        response = getattr(error.__cause__, "response", None)
        if isinstance(response, dict) and response.get("Error", {}).get("Code") in _REFUSED:
            return False
        raise
    return True


def _place(fs: Any, path: str) -> tuple[str, str]:
    bucket, key, _ = fs.split_path(path)
    return bucket, key


class _Memory:
    @staticmethod
    def read(fs: Any, path: str) -> Tagged | None:
        try:
            content = bytes(fs.cat_file(path))
        except FileNotFoundError:
            return None
        return Tagged(content, hashlib.sha256(content).hexdigest())

    @staticmethod
    def put(fs: Any, path: str, content: bytes, over: str | None) -> bool:
        with _ONE_AT_A_TIME:
            if not _Memory._has(fs, path, over):
                return False
            fs.pipe_file(path, content)
            return True

    @staticmethod
    def remove(fs: Any, path: str, tag: str) -> bool:
        with _ONE_AT_A_TIME:
            if not _Memory._has(fs, path, tag):
                return False
            fs.rm_file(path)
            return True

    @staticmethod
    def _has(fs: Any, path: str, tag: str | None) -> bool:
        found = _Memory.read(fs, path)
        return (None if found is None else found.tag) == tag


def _kind(fs: Any) -> type[_S3] | type[_Memory]:
    return _S3 if is_s3(fs) else _Memory


def _remove(fs: Any, path: str) -> None:
    try:
        fs.rm_file(path)
    except FileNotFoundError:
        return
