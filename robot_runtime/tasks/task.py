"""Task settings: actions, sensors, camera, limits, success. One YAML preset per published setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from robot_runtime.actions.continuous import Control
from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Intrinsics

TaskKind = Literal["pointnav", "objectnav", "vln", "eqa", "areagoal", "rearrangement"]
SensorName = Literal[
    "rgb",
    "depth",
    "gps",
    "compass",
    "pointgoal",
    "pointgoal_with_gps_compass",
    "objectgoal",
    "semantic",
    "instruction",
    "instruction_tokens",
    "question",
    "question_tokens",
    "areagoal",
    "obj_start_gps_compass",
    "obj_goal_gps_compass",
    "held",
    "phase",
    "program",
    "imagegoal",
    "floor_plan",
]
GOAL_SENSORS: dict[SensorName, TaskKind] = {
    "pointgoal": "pointnav",
    "pointgoal_with_gps_compass": "pointnav",
    "objectgoal": "objectnav",
    "instruction": "vln",
    "instruction_tokens": "vln",
    "question": "eqa",
    "question_tokens": "eqa",
    "areagoal": "areagoal",
    "obj_start_gps_compass": "rearrangement",
    "obj_goal_gps_compass": "rearrangement",
    "held": "rearrangement",
    "phase": "rearrangement",
    "program": "rearrangement",
    "imagegoal": "rearrangement",
}
"""Sensors that show a goal, with the kind of task whose episodes have it."""

SENSOR_NAMES: tuple[SensorName, ...] = get_args(SensorName)

HFOV_TOLERANCE_DEG = 0.5
"""Half a degree of field of view moves a pixel at the image's edge by 2 of 320."""

HEIGHT_TOLERANCE_M = 0.02


@dataclass(frozen=True)
class TrainingCamera:
    """The camera that the policy was trained with.

    Attributes:
        height_m: optical center above the floor.
        tilt_deg: at the start of an episode, up positive.
        depth_min_m: lower end of the simulator's clip range.
        depth_max_m: upper end of the simulator's clip range.
        depth_normalized: observation is (clip(d) - min) / (max - min) in [0, 1] (habitat-lab
            ``habitat_simulator.py:186-196``) instead of meters.
        depth_holes: value of a pixel without measurement *before* clipping: 0 m or ``depth_max_m``.
    """

    width: int
    height: int
    hfov_deg: float
    height_m: float
    depth_min_m: float
    depth_max_m: float
    depth_normalized: bool
    tilt_deg: float = 0.0
    depth_holes: Literal["zero", "max"] = "zero"

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not 0 <= self.depth_min_m < self.depth_max_m:
            raise ValueError(f"need 0 <= depth_min_m < depth_max_m, got {self.depth_min_m} and {self.depth_max_m}")
        if not 0 < self.hfov_deg < 180:
            raise ValueError(f"hfov_deg must lie in (0, 180), got {self.hfov_deg}")

    @property
    def intrinsics(self) -> Intrinsics:
        """The ideal pinhole."""
        return Intrinsics.from_hfov(self.width, self.height, self.hfov_deg)

    @property
    def tilt_rad(self) -> float:
        """``tilt_deg`` in radians."""
        return math.radians(self.tilt_deg)


@dataclass(frozen=True)
class Success:
    """Rule of success.

    Attributes:
        rule: ``distance``: geodesic distance from the stop pose to the nearest target is below ``distance_m``;
            ``visible``: the target is in view, unoccluded, within ``distance_m`` of the robot's axis (RoboTHOR);
            ``room``: the robot's center is in a goal room; ``answer``: the question is answered correctly;
            ``objects``: every object is as it should be, and nothing was harmed (:class:`Rearrangement`).
        distance_m: for ``distance`` and ``visible``; the other rules measure none.
        target: end of the distance: the goal position, or the object's view points.
        inclusive: whether exactly ``distance_m`` counts (papers write <=, habitat-lab's code <).
        min_visible_pixels: for ``visible``, pixels of the target in the stop frame.
        room: area of a room: the polygon of the scene file, or the box around it along the axes of ``map``.
        when: ``stop``: the rule must hold where the robot stopped; ``end``: at the end, stopped or out of steps;
            ``reached``: as soon as it holds, which ends the episode.
    """

    rule: Literal["distance", "visible", "room", "answer", "objects"]
    distance_m: float = 0.0
    target: Literal["goal", "view_points"] = "goal"
    inclusive: bool = False
    min_visible_pixels: int = 1
    room: Literal["polygon", "box"] = "polygon"
    when: Literal["stop", "end", "reached"] = "stop"

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        measures = self.rule in ("distance", "visible")
        if measures != (self.distance_m > 0):
            raise ValueError(f"distance_m goes with the rules distance and visible, got {self.rule}, {self.distance_m}")
        if self.rule == "visible" and self.when != "stop":
            raise ValueError("the rule visible is judged from the frame of the stop: 'when' must be stop")


@dataclass(frozen=True)
class Category:
    """A goal category, of objects or of rooms: its id in the observation, and the scene categories that count."""

    id: int
    matches: tuple[str, ...]

    __pydantic_config__ = config.STRICT


GoalKind = Literal["geometric", "predicate", "experience", "image"]


@dataclass(frozen=True)
class Rearrangement:
    """Rules of moving objects, and criteria of their goals (Batra et al. 2020, Rearrangement, sections 3, 4).

    The criteria per object hold together; None leaves one out, and one that an object has no measurement for is left
    out for it. With ``goal: predicate`` they decide nothing: the episode's program does.

    Attributes:
        goal: form in which the agent gets the goal: poses; a program of predicates; a walk through the goal state,
            before objects are moved; an image of the goal state, taken from the start.
        crosshair: target of ``grab_release``, fractions of the image from its left and top; 0.5, 0.5 is the middle.
        reach_m: from the optical center, along that ray.
        capacity: how many objects can be carried at once.
        max_translation_m: between final and goal pose, <=.
        max_angle_deg: between final and goal pose, <=.
        min_iou: of the oriented boxes, >, or >= with ``inclusive_iou``.
        inclusive_iou: whether exactly ``min_iou`` counts.
        max_openness: of the difference, <=.
        harm_min_iou: an object without a goal is unharmed while its boxes at the start and in the end overlap by more
            than this; None: there is no such test.
        walkthrough_steps: for ``experience``, how many actions the agent has in the goal state; ``stop`` ends it early.
            ``max_steps`` counts the rest.
        min_objects: fewest objects to be moved in generated episodes.
        max_objects: most objects to be moved in generated episodes, and of the sensors that show them.
    """

    goal: GoalKind
    crosshair: tuple[float, float]
    reach_m: float
    capacity: int = 1
    max_translation_m: float | None = None
    max_angle_deg: float | None = None
    min_iou: float | None = None
    inclusive_iou: bool = False
    max_openness: float | None = None
    harm_min_iou: float | None = None
    walkthrough_steps: int = 0
    min_objects: int = 1
    max_objects: int = 5

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not all(0 <= part <= 1 for part in self.crosshair):
            raise ValueError(f"crosshair must be two fractions of the image, got {self.crosshair}")
        if self.reach_m <= 0 or self.capacity < 1:
            raise ValueError(f"reach_m and capacity must be positive, got {self.reach_m} and {self.capacity}")
        limits = (self.max_translation_m, self.max_angle_deg, self.min_iou, self.max_openness, self.harm_min_iou)
        if any(limit is not None and limit < 0 for limit in limits):
            raise ValueError("a criterion cannot be negative")
        if self.goal != "predicate" and all(limit is None for limit in limits[:4]):
            raise ValueError("no criterion decides whether an object is at its goal")
        if (self.goal == "experience") != (self.walkthrough_steps > 0):
            raise ValueError("walkthrough_steps goes with the goal experience")
        if not 1 <= self.min_objects <= self.max_objects:
            raise ValueError(f"need 1 <= min_objects <= max_objects, got {self.min_objects} and {self.max_objects}")


@dataclass(frozen=True)
class Task:
    """One published setting.

    Attributes:
        actions: in the order of the policy's ids.
        sensors: the observation's keys, in order.
        robot_radius_m: for navigability and distances.
        rearrangement: for the kind of that name.
        max_steps: number of actions after which the episode ends.
        max_seconds: time since the start, on the robot's clock, with whose passing the action ends the episode; None
            for no limit.
        control: of the continuous actions; None where there are only ``actions``, which are discrete.
        gps_dimensions: of the sensor ``gps``, Habitat's ``DIMENSIONALITY``: ``robot_runtime.common.geometry.gps``.
        look_limits_deg: lowest and highest tilt of the camera, up positive. A look beyond them moves nothing and has
            failed, as in AI2-THOR; None: a look ends at the head's own limit, as habitat-sim clamps it.
        source: paper, repository and file that the constants come from.
    """

    name: str
    kind: TaskKind
    source: str
    actions: tuple[Action, ...]
    magnitudes: Magnitudes
    sensors: tuple[SensorName, ...]
    camera: TrainingCamera
    robot_radius_m: float
    max_steps: int
    success: Success
    categories: dict[str, Category] = field(default_factory=dict)
    rearrangement: Rearrangement | None = None
    control: Control | None = None
    max_seconds: float | None = None
    gps_dimensions: Literal[2, 3] = 2
    look_limits_deg: tuple[float, float] | None = None

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if Action.STOP not in self.actions:
            raise ValueError("a task needs the action stop: it is how an episode succeeds")
        if Action.VELOCITY_CONTROL in self.actions or Action.WAYPOINT_CONTROL in self.actions:
            raise ValueError("continuous actions stand under 'control', not in 'actions'")
        if self.kind in ("objectnav", "areagoal") and not self.categories:
            raise ValueError(f"a task of kind {self.kind} needs 'categories'")
        if (self.success.rule == "room") != (self.kind == "areagoal"):
            raise ValueError("the success rule room goes with the kind areagoal")
        if (self.success.rule == "answer") != (self.kind == "eqa"):
            raise ValueError("the success rule answer goes with the kind eqa")
        moves_objects = self.kind == "rearrangement"
        if (self.success.rule == "objects") != moves_objects or (self.rearrangement is not None) != moves_objects:
            raise ValueError("the kind rearrangement goes with the success rule objects and with 'rearrangement'")
        if (Action.GRAB_RELEASE in self.actions) != moves_objects:
            raise ValueError("the action grab_release goes with the kind rearrangement")
        if "semantic" in self.sensors and not self.categories:
            raise ValueError("the sensor 'semantic' shows category ids: the task needs 'categories'")
        for name in self.sensors:
            if GOAL_SENSORS.get(name, self.kind) != self.kind:
                raise ValueError(f"an episode of {self.kind} has nothing that the sensor {name!r} could show")
        if len(set(self.sensors)) < len(self.sensors):
            raise ValueError(f"a sensor stands twice in {list(self.sensors)}")
        if self.max_steps <= 0:
            raise ValueError(f"max_steps must be positive, got {self.max_steps}")
        if self.max_seconds is not None and not 0 < self.max_seconds < math.inf:
            raise ValueError(f"max_seconds must be positive and finite, got {self.max_seconds}")
        if self.max_seconds is not None and self.kind == "eqa":
            raise ValueError("a question is asked at the stop or the last step: the kind eqa has no max_seconds")
        if self.look_limits_deg is not None:
            low_deg, high_deg = self.look_limits_deg
            if not (-90 <= low_deg < high_deg <= 90 and low_deg <= self.camera.tilt_deg <= high_deg):
                raise ValueError(f"look_limits_deg must enclose the camera's tilt_deg, got {low_deg} and {high_deg}")

    @property
    def look_limits_rad(self) -> tuple[float, float] | None:
        """``look_limits_deg`` in radians."""
        if self.look_limits_deg is None:
            return None
        low_deg, high_deg = self.look_limits_deg
        return math.radians(low_deg), math.radians(high_deg)


def with_sensors(task: Task, names: Sequence[str]) -> Task:
    """The task with more sensors, and a name that lists them: its scores do not compare with those of the task itself.

    Sensors that it has already change nothing.

    Raises:
        ConfigError: for a sensor that does not exist, or that shows nothing in this task.
    """
    for name in names:
        if name not in SENSOR_NAMES:
            raise ConfigError(f"there is no sensor {name!r}", f"choose from {', '.join(SENSOR_NAMES)}")
    added = [name for name in SENSOR_NAMES if name in names and name not in task.sensors]
    try:
        return replace(task, name="+".join([task.name, *added]), sensors=(*task.sensors, *added))
    except ValueError as error:
        raise ConfigError(f"task {task.name!r}: {error}", "remove the sensor") from error


def load_task(name: str) -> Task:
    """The task preset of that name (``launch/tasks/NAME.yaml``) or at that path. Raises ``ConfigError``."""
    path: Path = config.find_preset("tasks", name)
    return config.load(path, Task)
