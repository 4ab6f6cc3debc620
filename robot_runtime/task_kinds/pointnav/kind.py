"""The kind of task ``pointnav``: go to a place given relative to the start (Savva et al. 2019, section 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.common.geometry import SE2, gps, polar_goal
from robot_runtime.task_kinds.pointnav.task import GoalImage
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import PI, UNBOUNDED, Bound, Moment, Sensor, goal_of, image_shape
from robot_runtime.tasks.session import TaskSession
from robot_runtime.tasks.task import Task

if TYPE_CHECKING:
    from robot_runtime.hal import Robot
    from robot_runtime.scenes.scene import Scene


@dataclass(frozen=True, slots=True)
class PointGoal:
    """The place that the point-goal sensors show, in the start frame: the episode's first goal, as in habitat-lab."""

    x_m: float
    y_m: float
    z_m: float = 0.0
    image_url: str = ""


def _seen(moment: Moment, seen_from: SE2) -> NDArray[np.float32]:
    """The goal as ``PointGoalSensor._compute_pointgoal`` (habitat-lab ``tasks/nav/nav.py``) has it."""
    goal, dimensions = goal_of(moment, PointGoal), moment.task.pointgoal_dimensions
    if moment.task.pointgoal_format == "cartesian":  # in the axes of GPS
        shown = gps(seen_from, SE2(goal.x_m, goal.y_m), dimensions)
        return np.asarray(shown + (np.array([0.0, goal.z_m, 0.0]) if dimensions == 3 else 0.0), np.float32)
    rho_m, azimuth_rad = polar_goal(seen_from, goal.x_m, goal.y_m)
    polar = [math.hypot(rho_m, goal.z_m), azimuth_rad, math.atan2(rho_m, goal.z_m)]
    return np.array(polar if dimensions == 3 else [rho_m, azimuth_rad], np.float32)


def _image(moment: Moment) -> NDArray[np.uint8]:
    from robot_runtime.task_kinds.pointnav.image_goal import goal_image

    return goal_image(goal_of(moment, PointGoal).image_url, moment.task.camera)


def _bounds(task: Task) -> tuple[Bound, Bound]:
    if task.pointgoal_format == "cartesian":
        return -UNBOUNDED, UNBOUNDED
    return (0.0, -PI, 0.0)[: task.pointgoal_dimensions], (UNBOUNDED, PI, PI)[: task.pointgoal_dimensions]


def _sensor(doc: str, seen_from: Callable[[Moment], SE2]) -> Sensor:
    return Sensor(
        doc=f"{doc}: [rho m, azimuth rad], left positive, or by pointgoal_format and pointgoal_dimensions",
        dtype=np.float32,
        shape=lambda task: (task.pointgoal_dimensions,),
        bounds=_bounds,
        value=lambda moment: _seen(moment, seen_from(moment)),
        goal_type=PointGoal,
        rank=10,
    )


class PointNavSession(TaskSession):
    """Session of point-goal navigation."""

    def __init__(self, robot: Robot, task: Task) -> None:
        self._robot, self._task = robot, task

    @override
    def begin_episode(self, episode: Episode, place: Callable[[], object]) -> Episode:
        if "imagegoal" not in self._task.sensors:
            return episode
        from robot_runtime.task_kinds.pointnav.image_goal import with_image  # few tasks show images of goals

        return with_image(self._robot, self._task, episode)


class PointNav(TaskKind):
    """Point-goal navigation."""

    sensors: ClassVar[Mapping[str, Sensor]] = {
        "pointgoal": _sensor("the goal seen from the start pose, constant over the episode", lambda _: SE2()),
        "pointgoal_with_gps_compass": _sensor(
            "the goal seen from the present pose", lambda moment: moment.pose.relative_to(moment.start)
        ),
        "imagegoal": Sensor(
            doc="color, 0..255, of the camera at the goal; constant over the episode",
            dtype=np.uint8,
            shape=image_shape(3),
            bounds=lambda _: (0, 255),
            value=_image,
            goal_type=PointGoal,
            rank=11,
        ),
    }
    details_type: ClassVar[type] = GoalImage
    session: ClassVar[type[TaskSession]] = PointNavSession

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        if not episode.goals:
            return None
        first = episode.goals[0]
        x_m, y_m = start.inverse().apply(first.x_m, first.y_m)
        return PointGoal(x_m, y_m, first.z_m - episode.start_z_m, GoalImage.of(episode).goal_image)

    @override
    def example_goal(self) -> object:
        return PointGoal(3.0, 1.0)


KIND = PointNav()
