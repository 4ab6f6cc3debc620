"""Sensors of rearrangement: the objects' places, the carried object, the phase, and the goal as program or image."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.common.geometry import polar_goal
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.hal import RgbdFrame
from robot_runtime.scenes.objects import Grab, ObjectPose
from robot_runtime.task_kinds.rearrangement.crosshair import settings
from robot_runtime.task_kinds.rearrangement.task import Layout, to_move
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.sensor import PI, UNBOUNDED, Bound, Moment, Sensor, goal_of, image_shape, text_sensor
from robot_runtime.tasks.state import StateFormat, StepState
from robot_runtime.tasks.task import Task

WALKTHROUGH = "walkthrough"
"""Phase in which the agent sees the goal state and moves nothing."""

UNSHUFFLE = "unshuffle"
"""Phase in which the agent moves objects."""


@dataclass(frozen=True, slots=True)
class RearrangementState(StepState):
    """State of the objects after an action.

    Attributes:
        poses: poses (map) of the tracked objects, without those that are held; in the log, in ``/objects``.
        held: ids of the carried objects, in the order of grasping.
        grab: result of the action ``grab_release``; None after any other.
        phase: phase of the episode, see :attr:`StepState.phase`.
    """

    poses: Mapping[str, ObjectPose] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    grab: Grab | None = None
    phase: str = ""

    @property
    @override
    def scored(self) -> bool:
        return self.phase != WALKTHROUGH


STATE_FORMAT = StateFormat(RearrangementState, shared="poses")


@dataclass(frozen=True, slots=True)
class RearrangementGoal:
    """The ``Moment.goal`` of a rearrangement task.

    Attributes:
        episode: episode with its objects and its program, in map.
        goal_frame: view from the start of the goal state; None where the task shows no such image.
        held: ids of the carried objects.
        phase: name of the running phase.
    """

    episode: Episode
    goal_frame: RgbdFrame | None = None
    held: tuple[str, ...] = ()
    phase: str = ""


def _goal(moment: Moment) -> RearrangementGoal:
    return goal_of(moment, RearrangementGoal)


def _object_places(moment: Moment, which: Literal["start", "goal"]) -> NDArray[np.float32]:
    """Polar, object by object; [-1, 0] where there is none."""
    episode, most = _goal(moment).episode, settings(moment.task).max_objects
    objects = to_move(episode)
    if len(objects) > most:
        raise EpisodeError(
            f"episode {episode.id!r}: {len(objects)} objects are to be moved, task {moment.task.name!r} shows {most}",
            "raise 'max_objects' in the task's preset",
        )
    shown = np.tile(np.array([-1.0, 0.0], np.float32), most)
    for row, item in enumerate(objects):
        pose = item.start if which == "start" or item.goal is None else item.goal
        shown[2 * row : 2 * row + 2] = polar_goal(moment.in_map, pose.position[0], pose.position[1])
    return shown


def _held(moment: Moment) -> NDArray[np.int64]:
    goal = _goal(moment)
    if not goal.held:
        return np.array([-1], np.int64)
    names = [item.id for item in to_move(goal.episode)]
    last = goal.held[-1]
    return np.array([names.index(last) if last in names else settings(moment.task).max_objects], np.int64)


def _program(moment: Moment) -> str:
    program = Layout.of(_goal(moment).episode).program
    if program is None:
        raise ConfigError("the episode has no program", "use episodes with one, or a task without the sensor 'program'")
    return json.dumps(program.to_document())


def _instruction(moment: Moment) -> str:
    text = _goal(moment).episode.info.get("instruction")
    if not isinstance(text, str):
        raise EpisodeError(
            f"episode {_goal(moment).episode.id!r} has no instruction",
            "state 'info: {instruction: ...}' in the episode, or use a task without the sensor 'instruction'",
        )
    return text


def _goal_image(moment: Moment) -> NDArray[np.uint8]:
    frame = _goal(moment).goal_frame
    if frame is None:
        raise ConfigError("there is no image of the goal state", "use a task whose goals are images")
    return np.asarray(frame.rgb.view())


def _places(doc: str, which: Literal["start", "goal"]) -> Sensor:
    def bounds(task: Task) -> tuple[Bound, Bound]:
        most = settings(task).max_objects
        return (-1.0, -PI) * most, (UNBOUNDED, PI) * most

    return Sensor(
        doc=doc,
        dtype=np.float32,
        shape=lambda task: (2 * settings(task).max_objects,),
        bounds=bounds,
        value=lambda moment: _object_places(moment, which),
        goal_type=RearrangementGoal,
    )


REARRANGEMENT_SENSORS: dict[str, Sensor] = {
    "obj_start_gps_compass": _places(
        "start of each object to be moved, from the present pose: [rho m, azimuth rad] each, left positive, in the "
        "episode's order; [-1, 0] for none",
        "start",
    ),
    "obj_goal_gps_compass": _places("goal of each object to be moved, as for its start", "goal"),
    "held": Sensor(
        doc="the carried object, the last one taken: its index among those to be moved, -1 for none, "
        "the largest number that can be shown for any other",
        dtype=np.int64,
        shape=lambda _: (1,),
        bounds=lambda task: (-1, settings(task).max_objects),
        value=_held,
        goal_type=RearrangementGoal,
    ),
    "phase": Sensor(
        doc="0 in the walkthrough, 1 when objects are to be moved",
        dtype=np.int64,
        shape=lambda _: (1,),
        bounds=lambda _: (0, 1),
        value=lambda moment: np.array([_goal(moment).phase != WALKTHROUGH], np.int64),
        goal_type=RearrangementGoal,
    ),
    "program": text_sensor(
        "the evaluation program as JSON: robot_runtime.tasks.goal_program", _program, RearrangementGoal
    ),
    "instruction": text_sensor("what to bring where, in words", _instruction, RearrangementGoal),
    "imagegoal": Sensor(
        doc="color, 0..255, of the goal state from the robot's start; constant over the episode",
        dtype=np.uint8,
        shape=image_shape(3),
        bounds=lambda _: (0, 255),
        value=_goal_image,
        goal_type=RearrangementGoal,
    ),
}
