"""Whether what a storage raised is likely to pass: out of reach, overloaded, cut off in the middle."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

_CODES = frozenset(
    ("ConditionalRequestConflict", "IncompleteBody", "InternalError", "OperationAborted", "RequestTimeout")
) | {"ServiceUnavailable", "SlowDown", "Throttling", "ThrottlingException", "TooManyRequests"}
_ERRNOS = frozenset(
    (errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ESTALE, errno.ETIMEDOUT)
)
# By name, for the packages of the storages are optional, and none is imported to ask.
_KINDS = frozenset(
    (
        "aiohttp.ClientConnectionError",
        "aiohttp.ClientPayloadError",
        "azure.ServiceRequestError",
        "azure.ServiceResponseError",
        "botocore.ConnectionError",
        "botocore.FlexibleChecksumError",
        "botocore.HTTPClientError",
        "botocore.IncompleteReadError",
        "botocore.ResponseParserError",
        "botocore.ResponseStreamingError",
        "http.HTTPException",
        "requests.ChunkedEncodingError",
        "requests.ConnectionError",
        "requests.Timeout",
        "urllib3.HTTPError",
    )
)
_TOO_MANY, _SERVER_ERROR, _NOT_IMPLEMENTED = 429, 500, 501


def is_passing(error: BaseException) -> bool:
    """Whether the same request may well succeed a moment later."""
    return any(map(_passes, _causes(error)))


def is_of_storage(error: BaseException) -> bool:
    """Whether it is a disk, a server or its client that failed, such as one without credentials."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] == "botocore"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _passes(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError | socket.gaierror):
        return True
    if isinstance(error, OSError) and error.errno in _ERRNOS and getattr(error, "response", None) is None:
        return True
    return _is_refusal_for_now(error) or any(map(_is_known, type(error).__mro__))


def _is_known(kind: type) -> bool:
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}" in _KINDS


def _is_refusal_for_now(error: BaseException) -> bool:
    """By the status and the code of the answer, wherever the client of this storage keeps them."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return response.get("Error", {}).get("Code") in _CODES or _says_later(status)
    return any(_says_later(getattr(error, name, None)) for name in ("status", "status_code", "code"))


def _says_later(status: object) -> bool:
    return isinstance(status, int) and (
        status == _TOO_MANY or (_SERVER_ERROR <= status < 600 and status != _NOT_IMPLEMENTED)
    )
