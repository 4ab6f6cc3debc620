"""Openers of unmodified agents of other projects."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from robot_runtime.actions import discrete
from robot_runtime.actions.timed import Decision
from robot_runtime.errors import PolicyError
from robot_runtime.imaging.depth import observed_m
from robot_runtime.policies.agents.gym import GymInterface
from robot_runtime.policies.agents.habitat import Habitat2019Interface, HabitatInterface
from robot_runtime.policies.agents.interface import Interface, InterfacePolicy
from robot_runtime.policies.agents.process import AgentProcess, split
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.openers import PolicyOpener, python_file
from robot_runtime.policy import Answer, Observation, Policy, World
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


class RobothorInterface(Interface):
    """Agents of the RoboTHOR challenges: a module with ``build()`` (robothor-challenge ``agents/random_agent.py``).

    ``build()`` returns the class, its arguments, and whether depth is needed; an instance has ``reset()`` and ``act``
    of ``{"object_goal": str, "rgb": uint8 (H, W, 3), "depth": float32 (H, W) in meters or None}``, which returns
    ``MoveAhead``, ``RotateRight``, ``RotateLeft``, ``LookUp``, ``LookDown`` or ``Stop``; ``End`` is AllenAct's word for
    the last.
    """

    kind = "robothor"
    solves: ClassVar[tuple[str, ...]] = ("objectnav",)

    @property
    @override
    def needs(self) -> tuple[str, ...]:
        return ("rgb", "objectgoal", "depth") if self.about.get("render_depth") else ("rgb", "objectgoal")

    @override
    def agent_observation(self, observation: Observation, task: Task) -> dict[str, Any]:
        goal = int(observation["objectgoal"][0])
        word = next(name for name, category in task.categories.items() if category.id == goal)
        depth_m = None
        if self.about.get("render_depth"):
            depth_m = observed_m(observation["depth"][:, :, 0].astype(np.float32), task.camera)
        return {"object_goal": word, "depth": depth_m, "rgb": observation["rgb"]}

    @override
    def decision(self, returned: Any, task: Task) -> tuple[Decision, Answer | None]:
        if not isinstance(returned, str):
            raise self.invalid_answer(returned, f"return one of {', '.join(discrete.ROBOTHOR.spellings)}")
        dialect = discrete.ALLENACT_ROBOTHOR if returned == "End" else discrete.ROBOTHOR
        return discrete.parse_action(dialect.parse(returned), task.actions), None


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
