"""The kind of task ``gatenav``: drive through a gate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, polar_goal
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, EpisodeDetails
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Moment, Sensor, goal_of
from robot_runtime.tasks.task import Task

Point = tuple[float, float]


@dataclass(frozen=True)
class GateRules(config.Strict):
    """Settings of the task; ``margin_m`` is the distance to the gate's middle that counts as passing it."""

    margin_m: float


@dataclass(frozen=True)
class Gate(EpisodeDetails):
    """The gate of an episode: its posts (x, y) in map, meters."""

    posts: tuple[Point, ...] = ()

    @property
    def words(self) -> str:
        return "drive through the gate"

    @property
    def middle(self) -> Point:
        (x0, y0), (x1, y1) = self.posts
        return (x0 + x1) / 2, (y0 + y1) / 2


@dataclass(frozen=True)
class GateGoal:
    """The gate's middle in the start frame."""

    x_m: float
    y_m: float


def _direction(moment: Moment) -> np.ndarray:
    goal = goal_of(moment, GateGoal)
    return polar_goal(moment.pose.relative_to(moment.start), goal.x_m, goal.y_m).astype(np.float32)


class GateNav(TaskKind):
    """Drive through a gate. The rule ``gate``: the robot has been within ``margin_m`` of the gate's middle."""

    settings_field = "gates"
    settings_type = GateRules
    details_type = Gate
    success_rules = ("gate",)
    distance_rules = ()
    sensors = {
        "gate": Sensor(
            doc="the gate's middle from the present pose: [rho m, azimuth rad], left positive",
            dtype=np.float32,
            shape=lambda _: (2,),
            bounds=lambda _: ((0.0, -math.pi), (1e3, math.pi)),
            value=_direction,
            goal_type=GateGoal,
        )
    }

    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        if len(Gate.of(episode).posts) != 2:
            raise EpisodeError(f"episode {episode.id!r}: has no gate of two posts", "use episodes of gatenav-1")
        return episode

    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[Point]:
        return [Gate.of(self.resolve_goals(task, scene, episode)).middle]

    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return GateGoal(*start.inverse().apply(*Gate.of(episode).middle))


KIND = GateNav()
