"""InternNav's ``/eval_dual`` (InternRobotics/InternNav at 7a5c624, ``scripts/realworld/http_internvla_*.py``).

The published server has its instruction and intrinsics in its source and reads neither from a request.
"""

import json
from collections.abc import Mapping
from typing import Any

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision, velocity
from robot_runtime.errors import PolicyError, PolicyMismatch
from robot_runtime.policies.remote.dialects.images import depth_png, followed, jpeg, points_of
from robot_runtime.policies.remote.http_request import Request, form_request
from robot_runtime.policy import Observation
from robot_runtime.tasks.task import Task

PORT = 5801

FORWARD_M, TURN_DEG = 0.25, 15.0

ACTIONS = {0: Action.STOP, 1: Action.MOVE_FORWARD, 2: Action.TURN_LEFT, 3: Action.TURN_RIGHT}
_LOOK_DOWN = (5, 9)
"""Requests to look down, which the server grants itself and its own client ignores."""

_WAIT_S = 0.3
"""Time until their client asks again after an answer without motion."""

_JPEG_QUALITY = 75


def check(task: Task) -> None:
    """Check that the task's steps are the server's. Raises ``PolicyMismatch``."""
    steps = task.magnitudes
    if (steps.forward_m, steps.turn_deg) != (FORWARD_M, TURN_DEG):
        raise PolicyMismatch(
            f"InternNav's actions are {FORWARD_M} m and {TURN_DEG:g}°, those of task {task.name!r} "
            f"{steps.forward_m:g} m and {steps.turn_deg:g}°",
            "choose a task with these steps, for instance vln_trajectory",
        )


def step(observation: Observation, index: int, task: Task) -> Request:
    """The request for a decision, by its number in the episode, of which the first (0) resets the server."""
    files = {
        "image": ("rgb_image.jpeg", jpeg(observation["rgb"], _JPEG_QUALITY)),
        "depth": ("depth_image.png", depth_png(observation["depth"], task.camera)),
    }
    asked = {"reset": index == 0, "idx": index, "instruction": str(observation["instruction"])}
    return form_request("/eval_dual", files, {"json": json.dumps(asked)})


def decisions(answer: Mapping[str, Any], speed_m_s: float, server: str) -> tuple[Decision, ...]:
    """The decisions in an answer: a trajectory, or actions to carry out one after another.

    0 is System 2's STOP; the published client does nothing on it. After an answer without motion the robot stands and
    asks again with a new image.

    Raises:
        PolicyError: there is neither, or a number is not finite.
    """
    actions = answer.get("discrete_action")
    if actions is None and "trajectory" in answer:
        return (followed(points_of(answer["trajectory"], server), speed_m_s),)
    if not isinstance(actions, list) or not all(type(one) is int and one in (*ACTIONS, *_LOOK_DOWN) for one in actions):
        raise PolicyError(
            f"{server}: answered {dict(answer)!r:.200}, neither a trajectory nor actions", "correct the server"
        )
    moves = tuple(ACTIONS[number] for number in actions if number in ACTIONS)
    return moves or (velocity(0.0, 0.0, duration_s=_WAIT_S, settle=False),)
