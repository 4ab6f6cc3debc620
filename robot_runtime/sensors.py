"""From a frame and a pose to the observation that a policy was trained on: Habitat's keys, shapes, types and frames.

:data:`SENSORS` is the table. The *start frame* has its origin at the pose in which the robot stood when the episode
began (x forward, y left); ``gps`` and ``compass`` are the present pose in it, in Habitat's axes.

One key is not Habitat's: its ``semantic`` numbers the objects of one scan, which means nothing in another place and
which no detector on a robot can tell. Here it tells the task's category, in the numbers of ``objectgoal``; frames and
logs keep the objects' own numbers.
Worked numbers are in ``tests/robot_runtime/test_sensors.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2, compass, gps, polar_goal
from robot_runtime.errors import ConfigError, DeviceFault, EpisodeError
from robot_runtime.hal import CameraInfo, RgbdFrame
from robot_runtime.imaging.depth import training_depth
from robot_runtime.policy import Observation
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks import areagoal, objectnav, pointnav
from robot_runtime.tasks.episode import Episode, Instruction, Question
from robot_runtime.tasks.rearrangement import task as rearrangement
from robot_runtime.tasks.task import HEIGHT_TOLERANCE_M, HFOV_TOLERANCE_DEG, SensorName, Task

MAX_TOKENS = 200
"""Of an instruction or a question: R2R-CE's preprocessed files pad to it."""

_NO_TOKEN = {"instruction": 0, "question": -1}  # R2R-CE's padding; a question's word 0 is a word
_NO_CATEGORY = np.int32(-1)
_UNBOUNDED = float(np.finfo(np.float32).max)
_PI = float(np.float32(math.pi))


@dataclass(frozen=True, slots=True)
class Changes:
    """What an episode in which objects are moved has to show.

    Attributes:
        episode: its objects and its program, in map. origin: of the start frame, in map.
        goal_frame: what is seen at the start if all is as it is to be; None where the task shows no such image.
        held: objects that the robot carries. phase: of the episode.
    """

    episode: Episode
    origin: SE2
    goal_frame: RgbdFrame | None = None
    held: tuple[str, ...] = ()
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything that an observation is made of.

    Attributes:
        frame: exposed while the robot stood at ``pose``.
        start: origin of the start frame; pose: of the robot; both in the localizer's frame.
        goal: (x, y) of the point goal in the start frame, metres. category_id: of the object goal.
        object_category_ids: of each object that ``frame.semantic`` can show (``objectnav.object_category_ids``).
        instruction, question: of the episode. changes: None where no objects are moved.
    """

    task: Task
    frame: RgbdFrame
    pose: SE2
    start: SE2
    goal: tuple[float, float] | None
    category_id: int | None
    object_category_ids: NDArray[np.int32]
    instruction: Instruction | None = None
    question: Question | None = None
    changes: Changes | None = None


Bound = float | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sensor:
    """One row of :data:`SENSORS`.

    Attributes:
        doc: what the values mean, with unit and frame.
        dtype, shape: exactly; text is ``np.str_``, as long as it is. bounds: (low, high), inclusive, of every element
            or of each one; of text none.
        value: a new array of that dtype and shape.
    """

    doc: str
    dtype: type[np.generic]
    shape: Callable[[Task], tuple[int, ...]]
    bounds: Callable[[Task], tuple[Bound, Bound]]
    value: Callable[[Moment], NDArray[Any]]


def _image_shape(channels: int) -> Callable[[Task], tuple[int, ...]]:
    return lambda task: (task.camera.height, task.camera.width, channels)


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


def _tokens(what: str, said: Instruction | Question | None) -> NDArray[np.int64]:
    tokens = said.tokens if said is not None else ()
    if not 0 < len(tokens) <= MAX_TOKENS:
        raise EpisodeError(
            f"the sensor '{what}_tokens' shows 1 to {MAX_TOKENS} tokens, this episode's {what} has {len(tokens)}",
            f"use a dataset with tokens, or a task without this sensor: {what!r} shows the text",
        )
    padding = [_NO_TOKEN[what]] * (MAX_TOKENS - len(tokens))
    return np.array([*tokens, *padding], np.int64)


def _text(said: Instruction | Question | None) -> NDArray[np.str_]:
    return np.array("" if said is None else said.text, np.str_)


def _most_objects(task: Task) -> int:
    return task.rearrangement.max_objects if task.rearrangement else 0


def _changes(moment: Moment) -> Changes:
    if moment.changes is None:
        raise ConfigError("the episode moves no objects", "use episodes of this task's kind")
    return moment.changes


def _object_places(moment: Moment, which: Literal["start", "goal"]) -> NDArray[np.float32]:
    """Polar, object by object; [-1, 0] where there is none."""
    changes, most = _changes(moment), _most_objects(moment.task)
    objects = rearrangement.to_move(changes.episode)
    if len(objects) > most:
        raise EpisodeError(
            f"episode {changes.episode.id!r}: {len(objects)} objects are to be moved, task {moment.task.name!r} shows "
            f"{most}",
            "raise 'max_objects' in the task's preset",
        )
    here = changes.origin @ moment.pose.relative_to(moment.start)
    shown = np.tile(np.array([-1.0, 0.0], np.float32), most)
    for row, item in enumerate(objects):
        pose = item.start if which == "start" or item.goal is None else item.goal
        shown[2 * row : 2 * row + 2] = polar_goal(here, pose.position[0], pose.position[1])
    return shown


def _held(moment: Moment) -> NDArray[np.int64]:
    changes = _changes(moment)
    if not changes.held:
        return np.array([-1], np.int64)
    names = [item.id for item in rearrangement.to_move(changes.episode)]
    last = changes.held[-1]
    return np.array([names.index(last) if last in names else _most_objects(moment.task)], np.int64)


def _program(moment: Moment) -> NDArray[np.str_]:
    program = _changes(moment).episode.program
    if program is None:
        raise ConfigError("the episode has no program", "use episodes with one, or a task without the sensor 'program'")
    return np.array(json.dumps(program.to_document()), np.str_)


def _goal_image(moment: Moment) -> NDArray[np.uint8]:
    frame = _changes(moment).goal_frame
    if frame is None:
        raise ConfigError("there is no image of the goal state", "use a task whose goals are images")
    return np.asarray(frame.rgb.view())


def _place_bounds(task: Task) -> tuple[Bound, Bound]:
    most = _most_objects(task)
    return (-1.0, -_PI) * most, (_UNBOUNDED, _PI) * most


def _token_sensor(what: str, value: Callable[[Moment], NDArray[Any]]) -> Sensor:
    return Sensor(
        doc=f"the {what} as the dataset's token ids, then {_NO_TOKEN[what]}",
        dtype=np.int64,
        shape=lambda _: (MAX_TOKENS,),
        bounds=lambda _: (_NO_TOKEN[what], np.iinfo(np.int64).max),
        value=value,
    )


def _text_sensor(doc: str, value: Callable[[Moment], NDArray[Any]]) -> Sensor:
    return Sensor(doc=doc, dtype=np.str_, shape=lambda _: (), bounds=lambda _: (0, 0), value=value)


SENSORS: dict[SensorName, Sensor] = {
    "rgb": Sensor(
        doc="colour, 0..255",
        dtype=np.uint8,
        shape=_image_shape(3),
        bounds=lambda _: (0, 255),
        value=lambda moment: moment.frame.rgb.view(),
    ),
    "depth": Sensor(
        doc="distance along the optical axis, clipped to the training range: metres, or normalised to 0..1",
        dtype=np.float32,
        shape=_image_shape(1),
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
        doc="id of the task's category that the object in the pixel counts as, -1 for none",
        dtype=np.int32,
        shape=_image_shape(1),
        bounds=lambda task: (-1, _category_bounds(task)[1]),
        value=_semantic,
    ),
    "instruction": _text_sensor("the route in words", lambda moment: _text(moment.instruction)),
    "instruction_tokens": _token_sensor("instruction", lambda moment: _tokens("instruction", moment.instruction)),
    "question": _text_sensor("the question in words", lambda moment: _text(moment.question)),
    "question_tokens": _token_sensor("question", lambda moment: _tokens("question", moment.question)),
    "obj_start_gps_compass": Sensor(
        doc="where each object to be moved was at the start, from the present pose: [rho m, azimuth rad] each, left "
        "positive, in the episode's order; [-1, 0] for none",
        dtype=np.float32,
        shape=lambda task: (2 * _most_objects(task),),
        bounds=_place_bounds,
        value=lambda moment: _object_places(moment, "start"),
    ),
    "obj_goal_gps_compass": Sensor(
        doc="where each object is to go, likewise",
        dtype=np.float32,
        shape=lambda task: (2 * _most_objects(task),),
        bounds=_place_bounds,
        value=lambda moment: _object_places(moment, "goal"),
    ),
    "held": Sensor(
        doc="which object is carried, the one taken last: its place among those to be moved, -1 for none, "
        "the most that can be shown for any other",
        dtype=np.int64,
        shape=lambda _: (1,),
        bounds=lambda task: (-1, _most_objects(task)),
        value=_held,
    ),
    "phase": Sensor(
        doc="0 in the walkthrough, 1 when objects are to be moved",
        dtype=np.int64,
        shape=lambda _: (1,),
        bounds=lambda _: (0, 1),
        value=lambda moment: np.array([_changes(moment).phase != "walkthrough"], np.int64),
    ),
    "program": _text_sensor("the evaluation program as JSON: robot_runtime.tasks.goal_program", _program),
    "imagegoal": Sensor(
        doc="colour, 0..255, of the goal state from where the robot starts; constant over the episode",
        dtype=np.uint8,
        shape=_image_shape(3),
        bounds=lambda _: (0, 255),
        value=_goal_image,
    ),
    "areagoal": Sensor(
        doc="the id of the goal room's category in the task",
        dtype=np.int64,
        shape=lambda _: (1,),
        bounds=_category_bounds,
        value=lambda moment: np.array([moment.category_id], np.int64),
    ),
}


def check_camera(task: Task, info: CameraInfo) -> None:
    """Whether a camera delivers what the task's policies were trained on.

    Raises:
        ConfigError: naming both values, for another size, field of view or height, or a sensor that it lacks.
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
            f"task {task.name!r} needs the sensor 'depth', and this camera sees colour alone",
            "use an RGB-D camera, or a task without it",
        )


class ObservationBuilder:
    """Makes the observations of one episode.

    Args:
        task: says which sensors.
        start: origin of the start frame, in the localizer's frame.
        goal: (x, y) of the point goal in the start frame, metres; None where no sensor shows it.
        category_id: of the object or area goal; None where no sensor shows it.
        object_category_ids: of each object of the scene; needed for the sensor ``semantic`` alone.
        instruction, question: None where no sensor shows them.
        changes: None where no objects are moved.

    Raises:
        ConfigError: if a sensor of the task shows a goal that the episode does not have.
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
        changes: Changes | None = None,
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
        self._start = start
        self._goal = goal
        self._category_id = category_id
        self._object_category_ids = np.empty(0, np.int32) if object_category_ids is None else object_category_ids
        self._words = (instruction, question)
        self._changes = changes

    def build(self, frame: RgbdFrame, pose: SE2, held: tuple[str, ...] = (), phase: str = "") -> Observation:
        """The observation of a frame taken at ``pose`` (localizer's frame), with these objects in the backpack.

        The arrays are read-only and may share memory with the frame: a policy that could change them could change the
        log. Copy one to change it.

        Raises:
            DeviceFault: if the frame has another size than the camera announced, or lacks the asked-for object ids.
        """
        size = (self._task.camera.height, self._task.camera.width)
        if frame.rgb.shape != (*size, 3) or frame.depth_m.shape != size:
            raise DeviceFault(
                f"camera: a frame is {frame.rgb.shape} in colour and {frame.depth_m.shape} in depth, not {size}",
                "check the camera's driver: it announced another size",
            )
        goals = (self._goal, self._category_id, self._object_category_ids, *self._words)
        changes = self._changes and replace(self._changes, held=held, phase=phase)
        moment = Moment(self._task, frame, pose, self._start, *goals, changes)
        observation: Observation = {name: SENSORS[name].value(moment) for name in self._task.sensors}
        for array in observation.values():
            array.flags.writeable = False
        return observation


def observations_of(
    task: Task, scene: Scene, episode: Episode, start: SE2, in_map: SE2, changes: Changes | None = None
) -> ObservationBuilder:
    """What makes the observations of an episode that was checked.

    Args:
        start: where the robot begins, in the localizer's frame; in_map: the same place in ``map``.
        changes: None where no objects are moved.

    Raises:
        ConfigError: a sensor of the task shows a goal that the episode does not have.
    """
    goal = category_id = None
    if episode.goals and task.kind == "pointnav":
        goal = in_map.inverse().apply(*pointnav.goal_point(episode))
    elif episode.goals and task.kind == "objectnav":
        category_id = objectnav.goal_id(task, episode)
    elif episode.category is not None and task.kind == "areagoal":
        category_id = areagoal.goal_id(task, episode)
    objects = objectnav.object_category_ids(task, scene)
    words = (episode.instruction, episode.question)
    return ObservationBuilder(task, start, goal, category_id, objects, *words, changes)
