"""Task settings: actions, sensors, camera, limits, success. One YAML preset per published setting."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, ValidationInfo, model_serializer

from robot_runtime.actions.discrete import CONTINUOUS, Action, Magnitudes
from robot_runtime.actions.timed import Control
from robot_runtime.common import config, quantities
from robot_runtime.errors import ConfigError
from robot_runtime.hal import BaseInfo, Intrinsics
from robot_runtime.tasks import payloads

HFOV_TOLERANCE_DEG = 0.5
"""Half a degree of field of view moves a pixel at the image's edge by 2 of 320."""

HEIGHT_TOLERANCE_M = 0.02

_EMPTY_SETTINGS = "rearrangement"
"""Field that files of tasks without settings of their own have as null, in the first layout of logs."""


@dataclass(frozen=True)
class TrainingCamera(config.Strict):
    """The camera that the policy was trained with.

    Attributes:
        height_m: optical center above the floor.
        tilt_deg: tilt at the start of an episode, up positive.
        depth_min_m: lower end of the simulator's clip range.
        depth_max_m: upper end of the simulator's clip range.
        depth_normalized: observation is (clip(d) - min) / (max - min) in [0, 1] (habitat-lab
            ``habitat_simulator.py:186-196``) instead of meters.
        depth_holes: value of a pixel without measurement *before* clipping: 0 m or ``depth_max_m``.
    """

    width: int
    height: int
    hfov_deg: quantities.FieldOfView
    height_m: quantities.CameraHeight
    depth_min_m: quantities.NearDepth
    depth_max_m: quantities.FarDepth
    depth_normalized: bool
    tilt_deg: quantities.TiltAngle = 0.0
    depth_holes: Literal["zero", "max"] = "zero"

    def __post_init__(self) -> None:
        quantities.check_depth_range(self.depth_min_m, self.depth_max_m)
        config.check_positive(self, "width", "height")
        if not 0 < self.hfov_deg < 180:
            raise ValueError(f"hfov_deg must lie in (0, 180), got {self.hfov_deg}")

    @property
    def intrinsics(self) -> Intrinsics:
        """The ideal pinhole."""
        return Intrinsics.from_hfov(self.width, self.height, self.hfov_deg)

    @property
    def pixels(self) -> str:
        """Width and height, ``640x480``."""
        return f"{self.width}x{self.height}"

    @property
    def tilt_rad(self) -> float:
        """``tilt_deg`` in radians."""
        return math.radians(self.tilt_deg)


@dataclass(frozen=True)
class Success(config.Strict):
    """Rule of success.

    Attributes:
        rule: name of a rule of the task's kind. The rule of plain navigation is ``distance``: geodesic distance from
            the stop pose to the nearest target is below ``distance_m``.
        distance_m: limit of the rules that measure a distance; 0 with any other.
        target: end of the distance: the goal position, or the object's view points.
        inclusive: whether exactly ``distance_m`` counts (papers write <=, habitat-lab's code <).
        min_visible_pixels: fewest pixels of the target in the stop frame, for rules that look at it.
        room: area of a room: the polygon of the scene file, or the box around it along the axes of ``map``.
        when: ``stop``: the rule must hold where the robot stopped; ``end``: at the end, stopped or out of steps;
            ``reached``: as soon as it holds, which ends the episode.
    """

    rule: str
    distance_m: quantities.GoalDistance = 0.0
    target: Literal["goal", "view_points"] = "goal"
    inclusive: bool = False
    min_visible_pixels: int = 1
    room: Literal["polygon", "box"] = "polygon"
    when: Literal["stop", "end", "reached"] = "stop"


@dataclass(frozen=True)
class Category(config.Strict):
    """A goal category, of objects or of rooms: its id in the observation, and the scene categories that count."""

    id: int
    matches: tuple[str, ...]


def _read_settings(document: Any, fields: ValidationInfo) -> object:
    """The settings of the task's kind; a kind that is unknown has been refused before."""
    return payloads.read_settings(payloads.KINDS.load(fields.data["kind"]), document) if "kind" in fields.data else None


@dataclass(frozen=True)
class Task(config.Strict):
    """One published setting.

    Attributes:
        kind: name of the kind of task, an entry point of ``robot_runtime.task_kinds``.
        actions: names of the actions, in the order of the policy's ids.
        sensors: keys of the observation, in order.
        robot_radius_m: radius of the robot, which decides where it fits and what is near.
        settings: what only this kind of task has, of ``TaskKind.settings_type``; None if it has nothing. In files it
            stands under the name that the kind gives it (``TaskKind.settings_field``).
        max_steps: number of actions after which the episode ends.
        max_seconds: time since the start, on the robot's clock, with whose passing the action ends the episode; None
            for no limit.
        control: limits of the continuous actions; None where there are only ``actions``, which are discrete.
        gps_dimensions: length of the sensor ``gps``, Habitat's ``DIMENSIONALITY``:
            ``robot_runtime.common.geometry.gps``.
        pointgoal_format: ``polar`` or ``cartesian``, Habitat's ``GOAL_FORMAT`` of the point goals.
        pointgoal_dimensions: their length, Habitat's ``DIMENSIONALITY``.
        look_limits_deg: lowest and highest tilt of the camera, up positive. A look beyond them moves nothing and has
            failed, as in AI2-THOR; so has one beyond the head's own reach, whatever the task. None: that alone.
        needs_contact_sensing: whether the base must report contacts. Without them no collision is noticed, counted or
            stopped.
        start_distance_m: smallest and largest geodesic distance from the start to the goal in generated episodes.
        source: paper, repository and file that the constants come from.
    """

    name: str
    kind: str
    source: str
    actions: tuple[Action, ...]
    magnitudes: Magnitudes
    sensors: tuple[str, ...]
    camera: TrainingCamera
    robot_radius_m: quantities.BodyRadius
    max_steps: int
    success: Success
    categories: dict[str, Category] = field(default_factory=dict)
    settings: Annotated[Any, PlainValidator(_read_settings)] = None
    control: Control | None = None
    max_seconds: quantities.EpisodeTime | None = None
    gps_dimensions: Literal[2, 3] = 2
    pointgoal_format: Literal["polar", "cartesian"] = "polar"
    pointgoal_dimensions: Literal[2, 3] = 2
    look_limits_deg: tuple[float, float] | None = None
    needs_contact_sensing: bool = True
    start_distance_m: tuple[quantities.StartDistance, quantities.StartDistance] = (1.0, 30.0)
    __inlined__ = "settings"

    def __post_init__(self) -> None:
        if not self.start_distance_m[0] < self.start_distance_m[1]:
            raise ValueError(f"start_distance_m is not a range of distances: {list(self.start_distance_m)}")
        if Action.STOP not in self.actions:
            raise ValueError("'actions' lacks stop, by which an episode succeeds")
        if set(CONTINUOUS) & set(self.actions):
            raise ValueError("continuous actions stand under 'control', not in 'actions'")
        if repeated := [action for action in Action if self.actions.count(action) > 1]:
            raise ValueError(f"action {repeated[0]} stands twice in 'actions': ids of actions would not be unique")
        kind = self._known_kind()
        kind.check_task(self)
        if "semantic" in self.sensors and not self.categories:
            raise ValueError("the sensor 'semantic' shows category ids: the task needs 'categories'")
        for name in self.sensors:
            if name not in kind.sensors and name not in payloads.SENSORS:
                raise ValueError(_no_sensor(name, self.kind))
        if len(set(self.sensors)) < len(self.sensors):
            raise ValueError(f"a sensor stands twice in {list(self.sensors)}")
        if self.max_steps <= 0:
            raise ValueError(f"max_steps must be positive, got {self.max_steps}")
        if self.max_seconds is not None and not 0 < self.max_seconds < math.inf:
            raise ValueError(f"max_seconds must be positive and finite, got {self.max_seconds}")
        if self.look_limits_deg is not None:
            low_deg, high_deg = self.look_limits_deg
            if not (-90 <= low_deg < high_deg <= 90 and low_deg <= self.camera.tilt_deg <= high_deg):
                raise ValueError(f"look_limits_deg must enclose the camera's tilt_deg, got {low_deg} and {high_deg}")

    def check_base(self, info: BaseInfo) -> None:
        """Refuse a base that senses no contact, unless the task accepts it. Raises ``ConfigError``."""
        if self.needs_contact_sensing and not info.senses_contact:
            raise ConfigError(
                f"base {info.name!r} senses no contact, and task {self.name!r} needs that: nothing would notice or "
                "count a collision",
                "where nothing can be hurt, accept it: copy the task's file, write `needs_contact_sensing: false` in "
                "it under a name of its own, and give it with --task",
            )

    def _known_kind(self) -> payloads.Payloads:
        kind = payloads.KINDS.find(self.kind)
        if kind is None:
            raise ValueError(f"there is no kind of task {self.kind!r}; {payloads.KINDS.suggestion(self.kind)}")
        return kind

    @classmethod
    def arrange(cls, document: dict[str, Any]) -> dict[str, Any]:
        """Collect the kind's settings, which have a name of their own in files (``config.INLINED``)."""
        kind = payloads.KINDS.find(str(document.get("kind")))
        if kind is None:  # of an unknown kind, no field can be told from a misspelling
            return {name: value for name, value in document.items() if name in cls.__dataclass_fields__}
        field = kind.settings_field
        common = {name: value for name, value in document.items() if name != field}
        if common.get(_EMPTY_SETTINGS, ...) is None:
            del common[_EMPTY_SETTINGS]
        return common if document.get(field) is None else {**common, "settings": document[field]}

    @classmethod
    def inlined_types(cls) -> list[type]:
        """The classes of settings of all kinds."""
        return [kind.settings_type for kind in payloads.KINDS.usable().values() if kind.settings_type is not None]

    def document(self) -> dict[str, Any]:
        """The fields by their names in files; values as they are."""
        field = payloads.KINDS.load(self.kind).settings_field or _EMPTY_SETTINGS
        return {field if name == "settings" else name: getattr(self, name) for name in self.__dataclass_fields__}

    @model_serializer(mode="wrap")
    def _settings_to_file(self, fields: "Callable[[Task], dict[str, Any]]") -> dict[str, Any]:
        field = payloads.KINDS.load(self.kind).settings_field or _EMPTY_SETTINGS
        return {field if name == "settings" else name: value for name, value in fields(self).items()}

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
        ConfigError: there is no such sensor, or it shows nothing in this task.
    """
    own = payloads.KINDS.load(task.kind).sensors
    sensors = {name: own.get(name) or payloads.SENSORS.find(name) for name in names if name not in task.sensors}
    # In one order, whatever the order of the names: it is that of the observation.
    added = sorted(sensors, key=lambda name: (getattr(sensors[name], "rank", math.inf), name))
    try:
        return replace(task, name="+".join([task.name, *added]), sensors=(*task.sensors, *added))
    except ValueError as error:
        raise ConfigError(f"task {task.name!r}: {error}", "remove the sensor") from error


def _no_sensor(name: str, kind: str) -> str:
    known = payloads.sensor_names()
    if name in known:
        return f"an episode of {kind} has nothing that the sensor {name!r} could show"
    return f"there is no sensor {name!r}; choose from {', '.join(known)}"


def load_task(name: str) -> Task:
    """The task preset of that name (``launch/tasks/NAME.yaml``) or at that path. Raises ``ConfigError``."""
    path: Path = config.find_preset("tasks", name)
    return config.load(path, Task)
