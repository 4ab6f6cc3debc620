"""Random sampling of navigable places, for generators of episodes."""

import math

import numpy as np

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import DistanceField, GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task

STARTS_PER_CATEGORY = 2000
"""Starts to try before a goal category counts as unreachable in a scene."""

MIN_RADIUS_M = 0.18
"""A LoCoBot's. Simulated agents have radii down to 0.1 m, which leaves starts where no robot fits."""


class Sampler:
    """Random places and headings where the task's robot and a LoCoBot fit.

    Attributes:
        distance_m: smallest and largest geodesic distance from the start of an episode to its goal.
    """

    def __init__(self, scene: Scene, task: Task, seed: int) -> None:
        self.scene = scene
        self.distance_m = task.start_distance_m
        self.rng = np.random.default_rng(seed)
        self.geodesic = GeodesicMap(scene.map, task.robot_radius_m)
        radius_m = max(task.robot_radius_m, MIN_RADIUS_M)
        # Half a cell's diagonal more than the radius, so that the robot fits anywhere in the cell.
        self._cells = np.argwhere(scene.map.navigable(radius_m + scene.map.resolution_m * math.sqrt(0.5)))
        if not len(self._cells):
            raise EpisodeError(
                f"{scene.folder / scene.file.map}: has no room for a robot of radius {radius_m} m",
                "check the map, or choose a task with a smaller robot",
            )

    def place(self) -> tuple[float, float]:
        """A point, uniform over navigable space."""
        row, column = self._cells[self.rng.integers(len(self._cells))]
        # The factor keeps the point inside the cell under rounding.
        within = 0.99 * (self.rng.random(2) - 0.5)
        return self.scene.map.to_point(row + within[0], column + within[1])

    def is_far_enough(self, distance_m: float) -> bool:
        """Whether an episode may begin at this geodesic distance from its goal."""
        return self.distance_m[0] <= distance_m <= self.distance_m[1]

    def heading(self) -> float:
        """A heading, uniform in (-pi, pi]."""
        return wrap_angle(self.rng.uniform(0, 2 * math.pi))

    def episode(self, index: int, start: tuple[float, float], field: DistanceField, goals: tuple[Goal, ...]) -> Episode:
        """An episode with a random heading, and the shortest path of a distance field."""
        return Episode(
            id=str(index),
            scene=self.scene.name,
            start=SE2(*start, self.heading()),
            goals=goals,
            shortest_path_m=field.at(*start),
            shortest_path=tuple((float(x), float(y)) for x, y in field.path(*start)),
        )

    def too_small(self, kind: str) -> EpisodeError:
        """The error for a scene without possible episodes."""
        width_m, height_m = self.scene.map.size_m
        area_m2 = len(self._cells) * self.scene.map.resolution_m**2
        return EpisodeError(
            f"{self.scene.folder}: too small or too open for {kind} episode of {self.distance_m[0]:g} to "
            f"{self.distance_m[1]:g} m that is not a straight line "
            f"(the robot has {area_m2:.1f} m² to move in, on a map of {width_m:.1f} x {height_m:.1f} m)",
            "use a larger scene, e.g. from `robot-runtime scene generate`",
        )
