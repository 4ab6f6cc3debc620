"""Agents of the Habitat challenges: ``reset()`` and ``act(observations)`` (habitat-lab ``core/agent.py``).

========================================================  ============================================================
returned                                                  year
========================================================  ============================================================
``1``, ``np.int64(1)``                                    habitat-lab's ids, stop 0 to look_down 5; of 2019 see
                                                          :class:`Habitat2019Interface`
``"move_forward"``, ``"MOVE_FORWARD"``                    habitat-lab; the configuration files of 2020 to 2022
``"move_forward_waypoint"``                               2023, discrete waypoint controller
``{"action": ...}``                                       any of these
``("velocity_control", "velocity_stop")``                 2023, with ``action_args``
``("waypoint_control", "velocity_stop")``                 2023, with ``action_args``
``"velocity_control"``                                    habitat-lab 0.2, with ``action_args``
``"answer"``                                              EQA, with ``action_args`` ``answer_id``; ends the episode
========================================================  ============================================================

Continuous numbers from -1 to 1 (``max_duration`` from 0) are scaled onto the task's ranges, as
``VelocityAction._preprocess_action`` and ``WaypointAction._preprocess_action`` of habitat-lab's tag challenge-2023 do.
Where that code and the challenge's README disagree, the README is followed:

* ``camera_pitch_velocity`` tilts the camera. The code's name for it is ``camera_pitch_angular_velocity``, so it ignored
  the challenge's own agent; both are accepted.
* ``max_duration`` is a duration and ``delta_camera_pitch_angle`` an angle; the code hands them on in the wrong order.
* ``velocity_stop`` above 0 ends the episode where the robot stands; the simulator moved for one more step (0.1 s).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from robot_runtime.actions import discrete
from robot_runtime.actions.timed import Control, Decision, Range, TimedAction, scaled, velocity, waypoint
from robot_runtime.errors import PolicyError, UnknownAction
from robot_runtime.policies.agents.interface import Interface, single
from robot_runtime.policy import Answer, Observation
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task

_STOP = "velocity_stop"
_VELOCITY = discrete.Action.VELOCITY_CONTROL.value
_WAYPOINT = discrete.Action.WAYPOINT_CONTROL.value
_CAMERA = ("camera_pitch_velocity", "camera_pitch_angular_velocity")
_ARGUMENTS = {
    _VELOCITY: ("linear_velocity", "angular_velocity", *_CAMERA),
    _WAYPOINT: ("xyt_waypoint", "max_duration", "delta_camera_pitch_angle"),
    _STOP: (_STOP,),
}
_UNIT: Range = (-1.0, 1.0)
_LIVE_GOAL = "pointgoal_with_gps_compass"

_REMEDY = "return an int, a name, {'action': one of these, 'action_args': {...}}, or of several {'chunk': [...]}"


class HabitatInterface(Interface):
    """Agents with ``reset`` and ``act``; see the module for their return values."""

    kind = "habitat"
    ids: ClassVar[discrete.Dialect] = discrete.HABITAT

    @override
    def agent_observation(self, observation: Observation, task: Task) -> dict[str, Any]:
        shown = super().agent_observation(observation, task)
        sensors = [sensor for name, sensor in kind_of(task).sensors.items() if name in shown and sensor.in_habitat]
        return shown | {name: value for sensor in sensors for name, value in sensor.in_habitat(observation).items()}

    @override
    def decision(self, returned: Any, task: Task) -> tuple[Decision, Answer | None]:
        value: Any = returned
        arguments: Mapping[str, Any] = {}
        if isinstance(returned, Mapping):
            value, arguments = returned.get("action"), returned.get("action_args") or {}
            if not isinstance(arguments, Mapping):
                raise self.invalid_answer(returned, _REMEDY)
        value = single(value)
        if isinstance(value, str) and value == "answer" and kind_of(task).answer_due(task, discrete.Action.STOP, 0):
            return discrete.Action.STOP, self._answer(returned, arguments)
        names = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
        if names and all(isinstance(name, str) and name in _ARGUMENTS for name in names):
            return self._continuous(tuple(map(str, names)), arguments, task), None
        if isinstance(value, bool) or not isinstance(value, int | np.integer | str):
            raise self.invalid_answer(returned, _REMEDY)
        return discrete.parse_action(self._discrete(value), task.actions), None

    def _discrete(self, value: int | np.integer[Any] | str) -> discrete.Action:
        if not isinstance(value, str):
            return self.ids.parse(int(value))
        for dialect in (discrete.HABITAT_2020, discrete.HABITAT_2023):
            if value in dialect.spellings:
                return dialect.parse(value)
        return discrete.HABITAT.parse(value)

    def _continuous(self, names: Sequence[str], arguments: Mapping[str, Any], task: Task) -> Decision:
        unknown = set(arguments) - {argument for name in names for argument in _ARGUMENTS[name]}
        if unknown:
            raise self.invalid_answer(
                dict(arguments), f"{' and '.join(names)} have no argument {', '.join(sorted(map(str, unknown)))}"
            )
        if _STOP in names and self._number(arguments, _STOP) > 0:
            return discrete.Action.STOP
        moves = [name for name in names if name != _STOP]
        if len(moves) > 1:
            raise self.invalid_answer(tuple(names), "return one of velocity_control and waypoint_control")
        control = _control(task, moves[0] if moves else _VELOCITY)
        if moves and moves[0] == _WAYPOINT:
            return self._waypoint(arguments, control)
        if not moves:
            return _held(control)
        return self._velocity(arguments, control)

    def _velocity(self, arguments: Mapping[str, Any], control: Control) -> Decision:
        ranges = control.velocity
        assert ranges is not None
        tilts = [name for name in _CAMERA if name in arguments]
        command = velocity(
            scaled(self._number(arguments, "linear_velocity"), _UNIT, ranges.linear_m_s),
            scaled(self._number(arguments, "angular_velocity"), _UNIT, ranges.angular_rad_s),
            scaled(self._number(arguments, tilts[0]), _UNIT, ranges.tilt_rad_s) if tilts else 0.0,
            ranges.time_step_s,
        )
        return discrete.Action.STOP if ranges.is_stop(command.points[0]) else command

    def _waypoint(self, arguments: Mapping[str, Any], control: Control) -> TimedAction:
        ranges = control.waypoint
        assert ranges is not None
        given = np.ravel(np.asarray(arguments.get("xyt_waypoint", ()), dtype=object)).tolist()
        if len(given) != 3:
            raise self.invalid_answer(dict(arguments), "give xyt_waypoint three numbers: x forward, y left, heading")
        x, y, yaw = (self._finite(value, "xyt_waypoint") for value in given)
        tilt = self._number(arguments, "delta_camera_pitch_angle") if "delta_camera_pitch_angle" in arguments else 0.0
        return waypoint(
            scaled(x, _UNIT, ranges.position_m),
            scaled(y, _UNIT, ranges.position_m),
            scaled(yaw, _UNIT, ranges.yaw_rad),
            scaled(tilt, _UNIT, ranges.tilt_rad),
            scaled(self._number(arguments, "max_duration"), (0.0, 1.0), ranges.duration_s),
        )

    def _number(self, arguments: Mapping[str, Any], name: str) -> float:
        if name not in arguments:
            raise self.invalid_answer(dict(arguments), f"give {name!r} in 'action_args'")
        return self._finite(arguments[name], name)

    def _finite(self, value: Any, name: str) -> float:
        value = single(value)
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise self.invalid_answer({name: value}, f"give {name!r} one finite number")
        return float(value)

    def _answer(self, returned: object, arguments: Mapping[str, Any]) -> int:
        number = arguments.get("answer_id")
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise PolicyError(
                f"agent {self.name!r}: act() returned {returned!r}, an answer without 'answer_id'",
                "return {'action': 'answer', 'action_args': {'answer_id': 17}}",
            )
        return int(number)


class Habitat2019Interface(HabitatInterface):
    """PointNav agents of the challenge of 2019.

    Ids begin with move_forward and end with stop, 3; ``pointgoal`` is updated at every step (the challenge's README),
    which later versions of habitat-lab call ``pointgoal_with_gps_compass``.
    """

    kind = "habitat-2019"
    ids = discrete.HABITAT_2019

    @property
    @override
    def needs(self) -> tuple[str, ...]:
        return (_LIVE_GOAL, *super().needs)

    @override
    def agent_observation(self, observation: Observation, task: Task) -> dict[str, Any]:
        return {**super().agent_observation(observation, task), "pointgoal": observation[_LIVE_GOAL]}


def _control(task: Task, name: str) -> Control:
    control = task.control
    if control is None or (control.waypoint if name == _WAYPOINT else control.velocity) is None:
        raise UnknownAction(
            f"the agent returned {name}, which task {task.name!r} does not have",
            "choose a task with 'control', for instance objectnav_hm3d2023",
        )
    return control


def _held(control: Control) -> TimedAction:
    """``velocity_stop`` alone, not above 0: a step in which nothing moves."""
    assert control.velocity is not None
    return velocity(0.0, 0.0, 0.0, control.velocity.time_step_s)
