"""Whether a Ray cluster answers at an address, and how it wants to be spoken to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, cast

import ray
from ray._private import services

from treadle.errors import ArgumentError, ClusterError

_NONE: Mapping[str, str] = MappingProxyType({})


def check_address(address: str) -> None:
    """See that the address is one of a head node.

    Raises:
        ArgumentError: it is not.
    """
    host, _, port = address.rpartition(":")
    if address != "auto" and ("://" in address or not host or not port.isdigit()):
        raise ArgumentError(
            f"address: expected HOST:PORT of the head node of a Ray cluster, such as '10.0.0.7:6379', "
            f"or 'auto', got {address!r}"
        )


def found_address(address: str) -> str:
    """The address; for "auto", that of the cluster which Ray finds on this machine.

    Raises:
        ClusterError: it finds none.
    """
    if address != "auto":
        return address
    try:
        return str(services.get_ray_address_from_environment("auto", None))
    except (ConnectionError, ValueError) as error:
        raise ClusterError(
            f"address: 'auto' means the Ray cluster of this machine, and there is none: {error}"
        ) from error


def on_loopback_only(address: str) -> bool:
    """Whether the cluster is of this machine alone; Ray would look for it at another address of it."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost"):
        return False
    try:
        socket.create_connection((_own_address(), int(port)), timeout=1).close()
    except OSError:
        return True
    return False


def mode_of(address: str, timeout: float) -> dict[str, str]:
    """The environment variables by which this process speaks to the cluster: its servers ask for a token as
    those of the cluster do, so a token must not be used where the cluster has none."""
    try:
        check_answers(address, timeout)
    except ClusterError as error:
        if "token" not in str(error).lower() or "RAY_AUTH_MODE" in os.environ or not _has_token():
            raise
        by_token = {"RAY_AUTH_MODE": "token"}
        check_answers(address, timeout, by_token)
        return by_token
    return {}


def check_answers(address: str, timeout: float, variables: Mapping[str, str] = _NONE) -> None:
    """See that a cluster answers, before Ray is asked: it may wait for minutes, or end the process.

    Raises:
        ClusterError: nothing of Ray answers there in time.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout).close()
    except OSError as error:
        raise _unreachable(address, timeout, str(error)) from error
    code = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1]).get_all_node_info()"
    try:
        subprocess.run(  # noqa: S603 - this very interpreter
            [sys.executable, "-c", code, address],
            timeout=timeout,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
        )
    except subprocess.TimeoutExpired as error:
        told = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else ""
        reason = "it asks for a token" if "InvalidAuthToken" in told else "what listens there is not Ray"
        raise _unreachable(address, timeout, reason) from error
    except subprocess.CalledProcessError as error:
        raise _unreachable(address, timeout, (error.stderr or "").strip().rpartition("\n")[2]) from error


def _unreachable(address: str, timeout: float, reason: str) -> ClusterError:
    return ClusterError(
        f"the Ray cluster at {address!r} does not answer within {timeout:g} s: {reason}; see that it runs "
        "(`ray status --address="
        + address
        + "`), that the address is that of its head node, and that no firewall "
        "is between; where it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
    )


def _has_token() -> bool:
    with suppress(ImportError, AttributeError):
        from ray._raylet import AuthenticationTokenLoader  # type: ignore[attr-defined]

        return bool(AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True))
    return False


def _own_address() -> str:
    return str(cast("Any", ray).util.get_node_ip_address())
