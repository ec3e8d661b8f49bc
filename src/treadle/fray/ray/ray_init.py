"""Starts Ray in this process, or connects it, so that nothing else in the process is changed by that."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray._private import worker as ray_worker


def init_quietly(options: dict[str, Any]) -> None:
    """Call `ray.init`, and have no handlers, messages or settings of it left behind."""
    logger = logging.getLogger("ray")
    level, handlers, propagate = logger.level, list(logger.handlers), logger.propagate
    with (
        signals_kept(),
        patched(ray_worker, "listen_error_messages", _listen_to_nothing),
        environment({"RAY_USAGE_STATS_ENABLED": "0"}),
    ):
        try:
            ray.init(**options, log_to_driver=False, logging_level=logging.ERROR, configure_logging=True)
        finally:
            logger.setLevel(level)
            logger.handlers[:] = handlers
            logger.propagate = propagate


@contextmanager
def signals_kept() -> Iterator[None]:
    """Ray puts a handler of its own in place of that for SIGTERM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for the block, in which other processes are started that inherit them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def patched(module: Any, name: str, value: object) -> Iterator[None]:
    """A setting of Ray that it reads from its own module only."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _listen_to_nothing(*_: object) -> None:
    """Ray prints on stdout what befalls workers; here that is the error of their job."""


def private_token() -> dict[str, str]:
    """Others on this machine must not run code in the cluster; the token is told to its processes only."""
    if "RAY_AUTH_MODE" in os.environ:
        return {}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def read_token_again() -> None:
    """Take the token of the environment: Ray reads it when it is imported, and keeps it."""
    with suppress(ImportError, AttributeError):  # older versions of Ray have no tokens
        from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

        AuthenticationTokenLoader.instance().reset_cache()
        Config.initialize("")
