"""What a client accepts: as long as it is open, what can be had here at all."""

from __future__ import annotations

from treadle.errors import ArgumentError
from treadle.fray.admission import Admission
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.processes.setting import Setting, check_environment
from treadle.fray.resources import ResourceConfig, machine_resources


class Terms:
    """Of a client that has `resources`, by default those of the machine.

    `environment` is that of jobs that ask for none.

    Raises:
        ArgumentError: that environment cannot be had.
    """

    def __init__(self, resources: ResourceConfig | None, environment: EnvironmentConfig) -> None:
        check_environment("client", environment)
        self._resources = resources
        # One CPU is always there; to look at the machine takes longer than most jobs.
        self._admission = Admission(self.resources, () if resources else (ResourceConfig(),))
        self._environment = environment
        self._open = True

    def resources(self) -> ResourceConfig:
        """What there is in all."""
        if self._resources is None:
            self._resources = machine_resources()
        return self._resources

    def close(self) -> None:
        """Accept no more."""
        self._open = False

    def check_open(self, what: str) -> None:
        """See that the client is open; `what` is what messages call the request.

        Raises:
            ArgumentError: it was shut down.
        """
        if not self._open:
            raise ArgumentError(f"{what}: the client was shut down and takes no more jobs")

    def check(self, what: str, resources: ResourceConfig, environment: EnvironmentConfig) -> None:
        """See that a request is accepted; see `check_open`.

        Raises:
            ArgumentError: the client was shut down, or the request can never be met.
        """
        self.check_open(what)
        self._admission.check(what, resources)
        check_environment(what, environment)

    def setting(self, environment: EnvironmentConfig) -> Setting:
        """What a worker is to have around it."""
        return Setting.here(self._environment if environment.is_plain else environment)
