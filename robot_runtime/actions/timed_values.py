"""Timed actions from plain values, and whether a task has them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from robot_runtime.actions.timed import Control, TimedAction, TimedPoint, trajectory, velocity, waypoint
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import UnknownAction


def check_timed(action: TimedAction, control: Control | None, task: str) -> None:
    """Whether a task has an action.

    Raises:
        UnknownAction: it has not, a number of the action is not finite, or its times do not increase.
    """
    sort = "trajectory" if not action.settle else action.action.value.removesuffix("_control")
    if control is None or getattr(control, sort) is None:
        moving = "" if action.settle else " in motion"
        raise UnknownAction(
            f"the policy asked for {action.action}{moving}, which task {task!r} does not have",
            f"use a task with 'control: {sort}', for instance {_TASKS[sort]}, or the task's discrete actions",
        )
    before_s = 0.0
    for point in action.points:
        pose = point.pose or SE2()
        numbers = {"after_s": point.after_s, "x_m": pose.x_m, "y_m": pose.y_m, "yaw_rad": pose.yaw_rad}
        numbers |= {name: getattr(point, name) for name in ("linear_m_s", "angular_rad_s", "tilt_rad")}
        for name, value in numbers.items():
            if not math.isfinite(value):
                raise UnknownAction(
                    f"the policy asked for {action.action} with {name} = {value}",
                    "correct the policy: it must return finite numbers",
                )
        if not action.settle and not point.after_s > before_s:
            raise UnknownAction(
                f"the policy asked for {action.action} with a point {point.after_s} s after one of {before_s} s",
                "correct the policy: the times of a trajectory's points increase, from more than 0",
            )
        before_s = point.after_s


_TASKS = {"velocity": "objectnav_hm3d2023", "waypoint": "objectnav_hm3d2023", "trajectory": "pointnav_trajectory"}


def timed_from(document: Mapping[str, Any]) -> TimedAction | None:
    """The timed action that plain values describe: arguments of a constructor, or the fields of a log.

    The keys tell the form: ``trajectory`` of points for :func:`trajectory`, ``linear_m_s`` for :func:`velocity`,
    ``x_m`` for :func:`waypoint`, ``points`` for the fields of a :class:`TimedAction`. Arrays count as lists.

    Returns:
        None where the values have none of these keys.

    Raises:
        ValueError, TypeError: a value is missing, unknown, or no number.
    """
    form = next((key for key in _FORMS if key in document), None)
    return None if form is None else _FORMS[form](**{key: _plain(value) for key, value in document.items()})


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"{value!r:.100} is not a number")
    return value


def _logged(points: Sequence[Any], **fields: Any) -> TimedAction:
    made = [
        TimedPoint(**{**point, "pose": None if point.get("pose") is None else SE2(**point["pose"])}) for point in points
    ]
    if not made or len({point.pose is None for point in made}) > 1:
        raise ValueError("an action has points, and poses or velocities alone")
    return TimedAction(tuple(made), **fields)


_FORMS: dict[str, Callable[..., TimedAction]] = {
    "points": _logged,
    "trajectory": lambda **fields: trajectory(fields.pop("trajectory"), **fields),
    "linear_m_s": velocity,
    "x_m": waypoint,
}
