"""Who takes part. Modules of tools are imported in the children alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FIRST = "first"
"""Not a case: loading when nothing that is compiled was kept from an earlier time."""


@dataclass(frozen=True)
class Contender:
    """One engine at one precision; `package` is the distribution whose version is told.

    A peer runs in the environment of the peers; `environment` is what its process finds set.
    """

    name: str
    module: str
    package: str
    precision: str
    settings: str
    cases: tuple[str, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether it is treadle."""
        return self.package == "treadle"

    @property
    def is_default(self) -> bool:
        """Whether it is treadle as it is when only the precision is chosen."""
        return self.is_ours and not self.options

    @property
    def is_peer(self) -> bool:
        """Whether it lives in the environment of the peers; transformers is among treadle's tests too."""
        return self.package not in ("treadle", "transformers")
