"""Opener of policies on another machine."""

from typing import Any

from typing_extensions import override

from robot_runtime.errors import ConfigError
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.openers import PolicyOpener
from robot_runtime.policy import Policy


class ServerOpener(PolicyOpener):
    """Opener of policies on another machine (:mod:`robot_runtime.policies.remote`)."""

    @override
    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        try:
            from robot_runtime.policies.remote.client import RemotePolicy
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{spec}: remote policies need {error.name!r}", "pip install 'robot-runtime[remote]'"
            ) from error
        return RemotePolicy(spec, **arguments)


SERVER = ServerOpener()
