"""Observations: a frame and a pose as the sensors of Habitat, with its keys, shapes, types and frames.

:data:`SENSORS` is the table of all sensors. The *start frame* has its origin at the pose in which the robot stood when
the episode began (x forward, y left); ``gps`` and ``compass`` are the present pose in it, in Habitat's axes.

``semantic`` differs from Habitat's, whose numbers are the objects of one scan: those mean nothing in another place, and
no detector on a robot reports them. Here a pixel's value is the task's category id, as in ``objectgoal``; frames and
logs contain the objects' own numbers. Worked numbers are in ``tests/robot_runtime/test_sensors.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2, compass, gps, polar_goal
from robot_runtime.errors import ConfigError, DeviceFault, EpisodeError
from robot_runtime.hal import CameraInfo, RgbdFrame
from robot_runtime.imaging.depth import training_depth
from robot_runtime.policy import Observation
from robot_runtime.scenes.scene import Room, Scene
from robot_runtime.task_kinds.objectnav import task as objectnav
from robot_runtime.task_kinds.pointnav import task as pointnav
from robot_runtime.task_kinds.rearrangement.sensors import REARRANGEMENT_SENSORS
from robot_runtime.tasks.episode import Episode, Instruction, Question
from robot_runtime.tasks.goal_category import category_of
from robot_runtime.tasks.sensor import Bound, Moment, Sensor, image_shape, text_sensor
from robot_runtime.tasks.task import HEIGHT_TOLERANCE_M, HFOV_TOLERANCE_DEG, SensorName, Task

MAX_TOKENS = 200
"""Largest number of tokens of an instruction or a question, to which R2R-CE's preprocessed files pad."""

_PADDING = {"instruction": 0, "question": -1}  # R2R-CE pads with 0, which is a word of a question
_NO_CATEGORY = np.int32(-1)
_UNBOUNDED = float(np.finfo(np.float32).max)
_PI = float(np.float32(math.pi))


def _depth_bounds(task: Task) -> tuple[Bound, Bound]:
    camera = task.camera
    return (0.0, 1.0) if camera.depth_normalized else (camera.depth_min_m, camera.depth_max_m)


def _category_bounds(task: Task) -> tuple[Bound, Bound]:
    return 0, max((category.id for category in task.categories.values()), default=0)


def _polar(seen_from: SE2, goal: tuple[float, float] | None) -> NDArray[np.float32]:
    if goal is None:
        raise ConfigError("the episode has no point goal", "use episodes of this task's kind")
    return polar_goal(seen_from, *goal).astype(np.float32)


def _semantic(moment: Moment) -> NDArray[np.int32]:
    objects = moment.frame.semantic
    if objects is None:
        raise DeviceFault("camera: a frame has no object ids", "check the camera's driver")
    ids = np.append(moment.object_category_ids, _NO_CATEGORY)  # -1, no object, finds the last entry
    if objects.size and not -1 <= objects.min() <= objects.max() < len(ids) - 1:
        raise DeviceFault(
            f"camera: a frame shows object {objects.max()}, the scene has {len(ids) - 1} objects",
            "give the camera's driver and the runtime the same scene",
        )
    return ids[objects][:, :, np.newaxis]


def _tokens(name: str, words: Instruction | Question | None) -> NDArray[np.int64]:
    tokens = words.tokens if words is not None else ()
    if not 0 < len(tokens) <= MAX_TOKENS:
        raise EpisodeError(
            f"the sensor '{name}_tokens' shows 1 to {MAX_TOKENS} tokens, this episode's {name} has {len(tokens)}",
            f"use a dataset with tokens, or a task without this sensor: {name!r} shows the text",
        )
    padding = [_PADDING[name]] * (MAX_TOKENS - len(tokens))
    return np.array([*tokens, *padding], np.int64)


def _text(words: Instruction | Question | None) -> NDArray[np.str_]:
    return np.array("" if words is None else words.text, np.str_)


def _floor_plan(moment: Moment) -> NDArray[np.str_]:
    to_start = moment.origin.inverse()
    rooms = [
        {"name": room.category, "polygon": [[round(c, 3) for c in to_start.apply(x, y)] for x, y in room.polygon]}
        for room in moment.rooms
    ]
    return np.array(json.dumps(rooms), np.str_)


def _token_sensor(name: str, value: Callable[[Moment], NDArray[Any]]) -> Sensor:
    return Sensor(
        doc=f"the {name} as the dataset's token ids, then {_PADDING[name]}",
        dtype=np.int64,
        shape=lambda _: (MAX_TOKENS,),
        bounds=lambda _: (_PADDING[name], np.iinfo(np.int64).max),
        value=value,
    )


SENSORS: dict[SensorName, Sensor] = {
    "rgb": Sensor(
        doc="color, 0..255",
        dtype=np.uint8,
        shape=image_shape(3),
        bounds=lambda _: (0, 255),
        value=lambda moment: moment.frame.rgb.view(),
    ),
    "depth": Sensor(
        doc="distance along the optical axis, clipped to the training range: meters, or normalized to 0..1",
        dtype=np.float32,
        shape=image_shape(1),
        bounds=_depth_bounds,
        value=lambda moment: training_depth(moment.frame.depth_m, moment.task.camera),
    ),
    "gps": Sensor(
        doc="[forward, right] in the start frame, m; with the task's gps_dimensions 3, [right, up, backward]",
        dtype=np.float32,
        shape=lambda task: (task.gps_dimensions,),
        bounds=lambda _: (-_UNBOUNDED, _UNBOUNDED),
        value=lambda moment: gps(moment.start, moment.pose, moment.task.gps_dimensions).astype(np.float32),
    ),
    "compass": Sensor(
        doc="heading relative to the start's, rad, counter-clockwise positive, in (-pi, pi]",
        dtype=np.float32,
        shape=lambda _: (1,),
        bounds=lambda _: (-_PI, _PI),
        value=lambda moment: np.array([compass(moment.start, moment.pose)], np.float32),
    ),
    "pointgoal": Sensor(
        doc="the goal seen from the start pose, constant over the episode: [rho m, azimuth rad], left positive",
        dtype=np.float32,
        shape=lambda _: (2,),
        bounds=lambda _: ((0.0, -_PI), (_UNBOUNDED, _PI)),
        value=lambda moment: _polar(SE2(), moment.goal),
    ),
    "pointgoal_with_gps_compass": Sensor(
        doc="the goal seen from the present pose: [rho m, azimuth rad], left positive",
        dtype=np.float32,
        shape=lambda _: (2,),
        bounds=lambda _: ((0.0, -_PI), (_UNBOUNDED, _PI)),
        value=lambda moment: _polar(moment.pose.relative_to(moment.start), moment.goal),
    ),
    "objectgoal": Sensor(
        doc="the goal category's id in the task",
        dtype=np.int64,
        shape=lambda _: (1,),
        bounds=_category_bounds,
        value=lambda moment: np.array([moment.category_id], np.int64),
    ),
    "semantic": Sensor(
        doc="id of the task's category of the object in the pixel, -1 for none",
        dtype=np.int32,
        shape=image_shape(1),
        bounds=lambda task: (-1, _category_bounds(task)[1]),
        value=_semantic,
    ),
    "instruction": text_sensor("the route in words", lambda moment: _text(moment.instruction)),
    "instruction_tokens": _token_sensor("instruction", lambda moment: _tokens("instruction", moment.instruction)),
    "question": text_sensor("the question in words", lambda moment: _text(moment.question)),
    "question_tokens": _token_sensor("question", lambda moment: _tokens("question", moment.question)),
    "areagoal": Sensor(
        doc="the id of the goal room's category in the task",
        dtype=np.int64,
        shape=lambda _: (1,),
        bounds=_category_bounds,
        value=lambda moment: np.array([moment.category_id], np.int64),
    ),
    "floor_plan": text_sensor(
        "the site's rooms, JSON: [{name, polygon: [[x, y], ...]}], m in the start frame, x forward, y left", _floor_plan
    ),
    **REARRANGEMENT_SENSORS,
}


def check_camera(task: Task, info: CameraInfo) -> None:
    """Check a camera against the one that the task's policies were trained with.

    Raises:
        ConfigError: naming both values: another size, field of view or height, or a sensor that the camera lacks.
    """
    wanted, found = task.camera, info.intrinsics
    if (found.width, found.height) != (wanted.width, wanted.height):
        raise ConfigError(
            f"the camera delivers {found.width}x{found.height} pixels, task {task.name!r} was trained on "
            f"{wanted.width}x{wanted.height}",
            "choose that mode in the robot's YAML, or a task preset with the camera's size",
        )
    if abs(found.hfov_deg - wanted.hfov_deg) > HFOV_TOLERANCE_DEG:
        raise ConfigError(
            f"the camera's horizontal field of view is {found.hfov_deg:.2f}°, task {task.name!r} was trained on "
            f"{wanted.hfov_deg:.2f}°",
            "correct 'hfov_deg' in the robot's YAML or choose a task preset with the camera's field of view",
        )
    if abs(info.mount.z_m - wanted.height_m) > HEIGHT_TOLERANCE_M:
        raise ConfigError(
            f"the camera sits {info.mount.z_m:.3f} m above the floor, task {task.name!r} was trained at "
            f"{wanted.height_m:.3f} m",
            "mount the camera at that height and correct the robot's YAML, or choose another task preset",
        )
    if "semantic" in task.sensors and not info.has_semantic:
        raise ConfigError(
            f"task {task.name!r} needs the sensor 'semantic', which this camera does not have",
            "use a simulated robot, or a task without it",
        )
    if "depth" in task.sensors and not info.has_depth:
        raise ConfigError(
            f"task {task.name!r} needs the sensor 'depth', and this camera delivers color only",
            "use an RGB-D camera, or a task without it",
        )


class ObservationBuilder:
    """Builder of the observations of one episode.

    Args:
        task: the task whose sensors are computed.
        start: origin of the start frame, in the localizer's frame.
        goal: (x, y) of the point goal in the start frame, meters; None where no sensor shows it.
        category_id: of the object or area goal; None where no sensor shows it.
        object_category_ids: of each object of the scene; needed for the sensor ``semantic`` alone.
        instruction: of the episode; None where no sensor shows it.
        question: of the episode; None where no sensor shows it.
        origin: origin of the start frame, in map.
        rooms: of the scene, in map; needed for the sensor ``floor_plan`` alone.

    Raises:
        ConfigError: a sensor of the task shows a goal that the episode does not have.
    """

    def __init__(
        self,
        task: Task,
        start: SE2,
        goal: tuple[float, float] | None = None,
        category_id: int | None = None,
        object_category_ids: NDArray[np.int32] | None = None,
        instruction: Instruction | None = None,
        question: Question | None = None,
        origin: SE2 = SE2(),  # noqa: B008 (frozen)
        rooms: tuple[Room, ...] = (),
    ) -> None:
        needs = {
            "pointgoal": goal,
            "pointgoal_with_gps_compass": goal,
            "objectgoal": category_id,
            "areagoal": category_id,
            "instruction": instruction,
            "instruction_tokens": instruction,
            "question": question,
            "question_tokens": question,
        }
        for name in task.sensors:
            if needs.get(name, ()) is None:
                raise ConfigError(
                    f"task {task.name!r}: sensor {name!r} shows a goal that the episode does not have",
                    "use episodes of this task's kind, or remove the sensor from the task",
                )
        self._task = task
        self._start, self._origin = start, origin
        self._goal = goal
        self._category_id = category_id
        self._object_category_ids = np.empty(0, np.int32) if object_category_ids is None else object_category_ids
        self._instruction, self._question = instruction, question
        self._rooms = rooms

    def build(self, frame: RgbdFrame, pose: SE2, extras: object = None) -> Observation:
        """Build the observation of a frame.

        The arrays are read-only and may share memory with the frame: a policy that could change them could change the
        log. Copy one to change it.

        Args:
            frame: of the announced size.
            pose: of the robot at its exposure, in the localizer's frame.
            extras: input of the task's own sensors (``TaskState.extras``).

        Raises:
            DeviceFault: the frame has another size than the camera announced, or lacks the object ids asked for.
        """
        size = (self._task.camera.height, self._task.camera.width)
        if frame.rgb.shape != (*size, 3) or frame.depth_m.shape != size:
            raise DeviceFault(
                f"camera: a frame is {frame.rgb.shape} in color and {frame.depth_m.shape} in depth, not {size}",
                "check the camera's driver: it announced another size",
            )
        moment = Moment(
            task=self._task,
            frame=frame,
            pose=pose,
            start=self._start,
            goal=self._goal,
            category_id=self._category_id,
            object_category_ids=self._object_category_ids,
            instruction=self._instruction,
            question=self._question,
            origin=self._origin,
            extras=extras,
            rooms=self._rooms,
        )
        observation: Observation = {name: SENSORS[name].value(moment) for name in self._task.sensors}
        for array in observation.values():
            array.flags.writeable = False
        return observation


def observations_of(task: Task, scene: Scene, episode: Episode, start: SE2, in_map: SE2) -> ObservationBuilder:
    """Return the builder of the observations of a checked episode.

    Args:
        task: the task whose sensors are computed.
        scene: the scene of the episode.
        episode: with resolved goals.
        start: pose at which the robot begins, in the localizer's frame.
        in_map: the same pose in map.

    Raises:
        ConfigError: a sensor of the task shows a goal that the episode does not have.
    """
    goal = category_id = None
    if episode.goals and task.kind == "pointnav":
        goal = in_map.inverse().apply(*pointnav.goal_point(episode))
    elif (episode.goals and task.kind == "objectnav") or (episode.category is not None and task.kind == "areagoal"):
        category_id = category_of(task, episode).id
    objects = objectnav.object_category_ids(task, scene)
    words = (episode.instruction, episode.question)
    return ObservationBuilder(task, start, goal, category_id, objects, *words, in_map, scene.rooms)
