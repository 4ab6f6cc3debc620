"""Openers of unmodified agents of other projects."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.errors import PolicyError
from robot_runtime.policies.agents.gym import GymInterface
from robot_runtime.policies.agents.habitat import Habitat2019Interface, HabitatInterface
from robot_runtime.policies.agents.interface import Interface
from robot_runtime.policies.agents.policy import AgentPolicy
from robot_runtime.policies.agents.robothor import RobothorInterface
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.openers import PolicyOpener, python_file
from robot_runtime.policy import Policy


class FunctionInterface(HabitatInterface):
    """Functions, which get no notice of an episode's start."""

    kind = "function"
    agent_observation = Interface.agent_observation


class AgentOpener(PolicyOpener):
    """Opener of unmodified agents of other projects, each in its own process.

    Args:
        interface: runtime's side of this sort of agent, whose ``kind`` is the scheme.
    """

    own_process: ClassVar[bool] = True

    def __init__(self, interface: type[Interface]) -> None:
        self.interface = interface

    @override
    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        return AgentPolicy(self.interface, spec.partition(":")[2], arguments, isolation)

    @override
    def check(self, spec: str, arguments: Mapping[str, Any]) -> None:
        if (file := self.file(spec)) is not None and not file.is_file():
            raise PolicyError(f"agent {spec!r}: {file}: no such file", "check the path before the colon")

    @override
    def file(self, spec: str) -> Path | None:
        return python_file(spec)


HABITAT = AgentOpener(HabitatInterface)
HABITAT_2019 = AgentOpener(Habitat2019Interface)
ROBOTHOR = AgentOpener(RobothorInterface)
GYM = AgentOpener(GymInterface)
FUNCTION = AgentOpener(FunctionInterface)
