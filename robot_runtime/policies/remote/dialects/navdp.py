"""NavDP's servers: DD-PPO, GNM, iPlanner, NavDP, NoMaD, ViNT, ViPlanner (InternRobotics/NavDP at cb33ff8).

Read in ``utils_tasks/client_utils.py``, ``eval_*_wheeled.py``, ``baselines/*/*_server.py`` and ``*_agent.py``. Their
client gives RGB to ``cv2.imencode``, which takes it for BGR; their servers decode and exchange the channels again. So
the network sees RGB only if the JPEG has red and blue exchanged, and so it is sent here.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import point_goal
from robot_runtime.errors import PolicyError
from robot_runtime.policies.remote.dialects.images import STILL_M, depth_png, followed, jpeg, points_of
from robot_runtime.policies.remote.http_request import Request, form_request, json_request
from robot_runtime.policy import Observation
from robot_runtime.tasks.task import Task

PORT = 8888

STOP_THRESHOLD = -0.5
"""Value of the critic below which NavDP's own network answers a turn; the default of ``client_utils.py``."""

POINT, IMAGE, NONE = "pointgoal", "imagegoal", "nogoal"
POINT_SENSOR, IMAGE_SENSOR = "pointgoal_with_gps_compass", "imagegoal"

ROUTES = {
    "navdp": (POINT, IMAGE, NONE),
    **dict.fromkeys(("ddppo", "iplanner", "viplanner"), (POINT,)),
    **dict.fromkeys(("gnm", "vint", "nomad"), (IMAGE, NONE)),
}
"""Sorts of goals of each server, by the name in its answer to a reset: another is status 404."""

_REACH_M = {"navdp": ((0.0, 10.0), (-10.0, 10.0)), "ddppo": ((-5.0, 5.0), (-5.0, 5.0))}
"""Ranges of x and y onto which a server clips point goals; what lies behind the robot becomes x = 0 for NavDP."""

_JPEG_QUALITY = 95


def resets(task: Task, stop_threshold: float) -> tuple[Request, Request]:
    """Requests that begin an episode: the first sets the server up, the second clears what it remembers.

    GNM, NoMaD and ViNT keep their images through the first.
    """
    k = task.camera.intrinsics
    matrix = [[k.fx, 0.0, k.cx], [0.0, k.fy, k.cy], [0.0, 0.0, 1.0]]
    setup = {"intrinsic": matrix, "stop_threshold": stop_threshold, "batch_size": 1}
    return json_request("/navigator_reset", setup), json_request("/navigator_reset_env", {"env_id": 0})


def route(algorithm: str, sensors: Sequence[str], server: str) -> str:
    """The sort of goal to ask for: what both the sensors show and the server takes, by its answer to a reset.

    Raises:
        PolicyError: there is no goal of a sort that the server takes.
    """
    routes = ROUTES.get(algorithm, (POINT, IMAGE, NONE))
    for goal, sensor in ((POINT, POINT_SENSOR), (IMAGE, IMAGE_SENSOR)):
        if goal in routes and sensor in sensors:
            return goal
    if NONE in routes:
        return NONE
    raise PolicyError(
        f"{server}: {algorithm} takes point goals, and there is no sensor {POINT_SENSOR!r}",
        "choose a task of point-goal navigation, for instance pointnav_trajectory",
    )


def step(observation: Observation, goal: str, task: Task) -> Request:
    """The request for a decision: image, depth and the goal of a sort of :func:`route`."""
    files = {
        "image": ("image.jpeg", jpeg(observation["rgb"], _JPEG_QUALITY, swapped=True)),
        "depth": ("depth.png", depth_png(observation["depth"], task.camera)),
    }
    fields = {}
    if goal == IMAGE:
        files["goal"] = ("goal.jpeg", jpeg(observation[IMAGE_SENSOR], _JPEG_QUALITY, swapped=True))
    if goal == POINT:
        x_m, y_m = point_goal(observation[POINT_SENSOR], task.pointgoal_format)
        fields["goal_data"] = json.dumps({"goal_x": [x_m], "goal_y": [y_m]})
    return form_request(f"/{goal}_step", files, fields)


def taken_goal(goal_m: tuple[float, float], algorithm: str) -> tuple[float, float] | None:
    """The place that a server takes for the point goal (x, y, m), where it is another one: it clips goals."""
    ranges = _REACH_M.get(algorithm, ())
    taken = tuple(min(max(value, low), high) for value, (low, high) in zip(goal_m, ranges, strict=False))
    return None if not taken or taken == goal_m else (taken[0], taken[1])


def decision(answer: Mapping[str, Any], speed_m_s: float, server: str) -> Decision:
    """The decision in an answer.

    No server has a word for stop or turn. All points at the robot are a stop (DD-PPO, GNM, ViNT). A line to the side
    that ends 1 m away is a turn to that side, by the task's angle: NavDP's critic is below its threshold, DD-PPO turns.

    Raises:
        PolicyError: there is no trajectory, or a number in it is not finite.
    """
    batch = answer.get("trajectory")
    if not isinstance(batch, list) or len(batch) != 1:
        raise PolicyError(f"{server}: answered {dict(answer)!r:.200}, not one trajectory", "correct the server")
    points = points_of(batch[0], server)
    if np.abs(points[:, 0]).max() <= STILL_M and abs(abs(points[-1, 1]) - 1.0) <= STILL_M:
        return Action.TURN_LEFT if points[-1, 1] > 0 else Action.TURN_RIGHT
    return followed(points, speed_m_s)
