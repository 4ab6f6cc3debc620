"""Agents of the RoboTHOR challenges: a module with ``build()`` (robothor-challenge ``agents/random_agent.py``).

``build()`` returns the class, its arguments, and whether depth is needed; an instance has ``reset()`` and ``act`` of
``{"object_goal": str, "rgb": uint8 (H, W, 3), "depth": float32 (H, W) in meters or None}``, which returns
``MoveAhead``, ``RotateRight``, ``RotateLeft``, ``LookUp``, ``LookDown`` or ``Stop``; ``End`` is AllenAct's word for the
last.
"""

from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from robot_runtime.actions.discrete import ALLENACT_ROBOTHOR, ROBOTHOR, parse_action
from robot_runtime.actions.timed import Decision
from robot_runtime.imaging.depth import observed_m
from robot_runtime.policies.agents.interface import Interface
from robot_runtime.policy import Answer, Observation
from robot_runtime.tasks.task import Task


class RobothorInterface(Interface):
    """Agents of the RoboTHOR challenges; see the module for their observations and return values."""

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
            raise self.invalid_answer(returned, f"return one of {', '.join(ROBOTHOR.spellings)}")
        dialect = ALLENACT_ROBOTHOR if returned == "End" else ROBOTHOR
        return parse_action(dialect.parse(returned), task.actions), None
