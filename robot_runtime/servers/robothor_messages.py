"""Messages of the RoboTHOR robot protocol (``robot_runtime.servers.robothor``): parsed requests, written events."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import ROBOTHOR
from robot_runtime.common.config import no_constant
from robot_runtime.common.geometry import SE2, ros_to_thor_position, tilt_to_thor_horizon_deg, yaw_to_thor_rotation_deg
from robot_runtime.policy import Observation
from robot_runtime.servers.request_queue import Refused
from robot_runtime.task_kinds.objectnav.format_robothor import AGENT_HEIGHT_M
from robot_runtime.tasks.task import Task, TrainingCamera

_ENVELOPE = frozenset({"action", "sequenceId", "agentId", "renderImage"})


@dataclass(frozen=True, slots=True)
class Request:
    """A ``/step`` request, checked as far as possible without the episode."""

    action: str
    sequence: int
    images: bool
    arguments: Mapping[str, Any]


def parse_request(body: bytes) -> Request:
    """Parse a body. Raises ``Refused`` for anything that ai2thor's client does not send."""
    try:
        document = json.loads(body, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the request is not JSON: {str(error)[:200]}", "send what ai2thor's Controller sends") from error
    if not isinstance(document, dict):
        raise Refused("the request is not an object", 'send {"action": ..., "sequenceId": 0, "agentId": 0}')
    action = document.get("action")
    if not isinstance(action, str) or len(action) > 100:
        raise Refused("'action' is missing or not a short text", f"use one of {', '.join(ROBOTHOR.spellings)}")
    sequence = document.get("sequenceId", 0)
    if isinstance(sequence, bool) or not isinstance(sequence, int) or not 0 <= sequence < 2**53:
        raise Refused("'sequenceId' is not an integer >= 0", "count requests from 1, or leave it at 0")
    if document.get("agentId", 0) != 0:
        raise Refused("there is one agent, 0", "leave agent_id at 0")
    images = document.get("renderImage", True)
    if not isinstance(images, bool):
        raise Refused("'renderImage' is neither true nor false", "use the controller's 'headless'")
    arguments = {name: value for name, value in document.items() if name not in _ENVELOPE}
    return Request(action, sequence, images, arguments)


def number(name: str, value: object) -> float:
    """Value of an argument. Raises ``Refused`` for anything but a number below 1e9."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
        raise Refused(f"{name}: {str(value)[:100]!r} is not a number below 1e9", "give a number")
    return float(value)


def check_size(name: str, value: object, own: float, task: Task) -> None:
    """Raise ``Refused`` if the size of a motion, step or angle is not the task's."""
    if not math.isclose(number(name, value), own, rel_tol=1e-3):
        raise Refused(
            f"{name} is {value}, task {task.name!r} has {own:g}", "leave it out, or serve the agent's own task"
        )


def event(camera: TrainingCamera, action: str, success: bool, code: str, message: str) -> dict[str, Any]:
    """Fields of every event that the client and the challenge's code read."""
    return {
        "agentId": 0,
        "screenWidth": camera.width,
        "screenHeight": camera.height,
        "lastAction": action,
        "lastActionSuccess": success,
        "errorCode": code,
        "errorMessage": message,
        "actionReturn": None,
        "collided": False,
        "objects": [],  # a robot has no list of visible objects
        "inventoryObjects": [],
    }


def agent(pose: SE2, tilt_rad: float) -> dict[str, Any]:
    """The ``agent`` of an event, from a pose in map and a camera tilt."""
    x, _, z = ros_to_thor_position(pose.x_m, pose.y_m, 0.0)
    return {
        "name": "agent",
        "position": {"x": x, "y": AGENT_HEIGHT_M, "z": z},
        "rotation": {"x": 0.0, "y": yaw_to_thor_rotation_deg(pose.yaw_rad), "z": 0.0},
        "cameraHorizon": tilt_to_thor_horizon_deg(tilt_rad),
    }


def pack(sequence: int, agent_event: dict[str, Any], camera: TrainingCamera, observation: Observation) -> bytes:
    """Serialize an answer; ``observation`` is empty without images, and its depth is in meters or normalized."""
    image, depth = [], []
    if "rgb" in observation:
        image.append(_buffer(observation["rgb"]))
    if "depth" in observation:
        depth_m = observation["depth"].astype(np.float64)
        if camera.depth_normalized:
            depth_m = camera.depth_min_m + depth_m * (camera.depth_max_m - camera.depth_min_m)
        depth.append(_buffer(depth_m))
    metadata = {"sequenceId": sequence, "agents": [agent_event]}
    packed: bytes = msgpack.packb({"image": image, "image_depth": depth, "metadata": metadata}, use_bin_type=True)
    return packed


def _buffer(array: NDArray[Any]) -> memoryview:
    """Bytes of an array; msgpack copies them once."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
