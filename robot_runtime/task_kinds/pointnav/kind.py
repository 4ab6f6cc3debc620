"""The kind of task ``pointnav``: go to a place given relative to the start (Savva et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.common.geometry import SE2, polar_goal
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import PI, UNBOUNDED, Moment, Sensor, goal_of
from robot_runtime.tasks.task import Task

if TYPE_CHECKING:
    from robot_runtime.scenes.scene import Scene


@dataclass(frozen=True, slots=True)
class PointGoal:
    """The place that the point-goal sensors show, in the start frame: the episode's first goal, as in habitat-lab."""

    x_m: float
    y_m: float


def _polar(moment: Moment, seen_from: SE2) -> NDArray[np.float32]:
    goal = goal_of(moment, PointGoal)
    return polar_goal(seen_from, goal.x_m, goal.y_m).astype(np.float32)


class PointNav(TaskKind):
    """Point-goal navigation."""

    sensors: ClassVar[Mapping[str, Sensor]] = {
        "pointgoal": Sensor(
            doc="the goal seen from the start pose, constant over the episode: [rho m, azimuth rad], left positive",
            dtype=np.float32,
            shape=lambda _: (2,),
            bounds=lambda _: ((0.0, -PI), (UNBOUNDED, PI)),
            value=lambda moment: _polar(moment, SE2()),
            goal_type=PointGoal,
            rank=10,
        ),
        "pointgoal_with_gps_compass": Sensor(
            doc="the goal seen from the present pose: [rho m, azimuth rad], left positive",
            dtype=np.float32,
            shape=lambda _: (2,),
            bounds=lambda _: ((0.0, -PI), (UNBOUNDED, PI)),
            value=lambda moment: _polar(moment, moment.pose.relative_to(moment.start)),
            goal_type=PointGoal,
            rank=10,
        ),
    }

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        if not episode.goals:
            return None
        first = episode.goals[0]
        return PointGoal(*start.inverse().apply(first.x_m, first.y_m))

    @override
    def example_goal(self) -> object:
        return PointGoal(3.0, 1.0)


KIND = PointNav()
