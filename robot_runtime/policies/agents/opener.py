"""Openers of unmodified agents of other projects."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.errors import PolicyError
from robot_runtime.policies.agents.gym import GymInterface
from robot_runtime.policies.agents.habitat import Habitat2019Interface, HabitatInterface
from robot_runtime.policies.agents.interface import Interface, InterfacePolicy
from robot_runtime.policies.agents.process import AgentProcess, split
from robot_runtime.policies.agents.robothor import RobothorInterface
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.openers import PolicyOpener, python_file
from robot_runtime.policy import Policy, World
from robot_runtime.tasks.task import Task


class AgentPolicy(InterfacePolicy):
    """Runs an unmodified agent, of a spec ``module:name`` or ``path/to/file.py:name``.

    The agent's random numbers (Python's, numpy's global ones, torch's) are seeded at each episode's start: its
    interface has no seed. After a failure has ended the process, the next episode starts a new one.

    Raises:
        PolicyError: the agent cannot be loaded.
    """

    def __init__(
        self, interface: type[Interface], spec: str, arguments: dict[str, Any], isolation: Isolation | None = None
    ) -> None:
        name = f"{interface.kind}:{spec}"
        self._process = AgentProcess(name, isolation or Isolation())
        self._request = {"type": "load", "interface": interface.kind, "spec": spec, "arguments": arguments}
        try:
            about = self._process.start(self._request).get("about")
        except BaseException:
            self._process.close()
            raise
        super().__init__(interface(name, about if isinstance(about, dict) else {}))

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode. Raises ``PolicyError``."""
        super().reset(task, seed, world)
        if not self._process.running:
            self._process.start(self._request)
        self._process.ask({"type": "reset", "seed": seed}, {}, "reset()")

    @override
    def _returned(self, shown: dict[str, Any]) -> Any:
        request, arrays = split(shown)
        return self._process.ask({"type": "act", **request}, arrays, "act()").get("action")

    @override
    def close(self) -> None:
        self._process.close()


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
