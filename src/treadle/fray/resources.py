"""What a job asks for, and what a place that runs jobs has: processors, memory, devices, and tags.

A tag is anything else of which there is a limited amount: licences, places at a database, disks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from treadle.errors import ArgumentError
from treadle.fray.checks import check_amount


@dataclass(frozen=True)
class ResourceConfig:
    """Amounts of at least 0: `cpu` and `gpu` in devices, `memory` in bytes, `tags` by name.

    Raises:
        ArgumentError: an amount is negative or no number, or a tag has no name.
    """

    cpu: float = 1
    memory: int = 0
    gpu: float = 0
    tags: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        tags: object = self.tags
        if not isinstance(tags, Mapping):
            raise ArgumentError(f"tags: expected a mapping of names to amounts, got {tags!r}")
        object.__setattr__(self, "tags", dict(tags))  # a copy: nobody alters it from outside
        check_amount("memory", self.memory, whole=True)
        for name in ("cpu", "gpu"):
            check_amount(name, getattr(self, name))
        for tag, amount in tags.items():
            if not isinstance(tag, str) or not tag:
                raise ArgumentError(f"tags: expected names that are not empty, got {tag!r}")
            check_amount(f"tags.{tag}", amount)


def machine_resources(
    *,
    cpu: float | None = None,
    memory: int | None = None,
    gpu: float = 0,
    tags: Mapping[str, float] | None = None,
) -> ResourceConfig:
    """What this machine has in all; what is given here holds in place of what is found.

    Raises:
        ArgumentError: as for `ResourceConfig`.
    """
    return ResourceConfig(
        cpu=(os.cpu_count() or 1) if cpu is None else cpu,
        memory=_machine_memory() if memory is None else memory,
        gpu=gpu,
        tags={} if tags is None else tags,
    )


def _machine_memory() -> int:
    import psutil  # here: it costs more than the rest of this room to load, and few ask

    return int(psutil.virtual_memory().total)
