"""Steps of a kind from outside: its state is written under its own name, its schema derives from its class."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import synthetic
from synthetic import FORWARD, STOP
from viewer_schema import fields_of

from robot_runtime.actions import timed
from robot_runtime.actions.timed import TimedAction
from robot_runtime.recording import json_output
from robot_runtime.recording.channels import channels
from robot_runtime.recording.json_values import MALFORMED
from robot_runtime.recording.step_form import StepForm
from robot_runtime.records import StepRecord
from robot_runtime.tasks.state import NO_STATE, StateFormat, StepState


@dataclass(frozen=True, slots=True)
class Door:
    angle_deg: float
    locked: bool


@dataclass(frozen=True, slots=True)
class DoorState(StepState):
    opened: int
    last: Door | None = None
    doors: Mapping[str, Door] = field(default_factory=dict)
    tried: tuple[str, ...] = ()


FORMAT = StateFormat(DoorState, "doors_of_the_house", "what is open", "doors")
DOORS = {"front": Door(float("inf"), True)}
STATE = DoorState(2, Door(10.5, False), DOORS, ("front", "back"))


@pytest.fixture(scope="module")
def step() -> StepRecord:
    return synthetic.drive(synthetic.header(), [FORWARD, STOP])[1]


def written(form: StepForm, step: StepRecord, since: int | None = 1) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json_output.dumps(form.encode(step, since)))
    return data


def test_a_state_survives(step: StepRecord) -> None:
    form = StepForm(FORMAT)
    stateful = replace(step, state=STATE)
    data = written(form, stateful)
    assert data["doors_of_the_house"] == {
        "since": 1,
        "opened": 2,
        "last": {"angle_deg": 10.5, "locked": False},
        "tried": ["front", "back"],
    }
    shared = json.loads(json_output.dumps(form.encode_objects(1, form.shared(stateful))))
    assert shared == {"index": 1, "doors": {"front": {"angle_deg": "Infinity", "locked": True}}}
    assert form.decode(data, {}, {None: {}, 1: form.decode_objects(shared)}).state == STATE


def test_a_step_without_a_state_has_null(step: StepRecord) -> None:
    form = StepForm(FORMAT)
    assert written(form, step, None)["doors_of_the_house"] is None
    assert form.decode(written(form, step, None), {}, {None: {}}).state == NO_STATE


def test_a_kind_that_logs_no_state_keeps_the_field_of_older_logs(step: StepRecord) -> None:
    form = StepForm(StateFormat())
    assert written(form, step)["objects"] is None
    with pytest.raises(TypeError, match="DoorState"):
        form.encode(replace(step, state=STATE), None)


def test_fields_with_a_default_may_be_missing(step: StepRecord) -> None:
    form = StepForm(FORMAT)
    data = written(form, replace(step, state=STATE)) | {"doors_of_the_house": {"opened": 3}}
    assert form.decode(data, {}, {None: {}}).state == DoorState(3)


@pytest.mark.parametrize(
    "state",
    [5, [], {}, {"opened": True}, {"opened": 1, "since": 7}, {"opened": 1, "tried": "x"}, {"opened": 1, "last": 0}],
)
def test_malformed_states_are_refused(step: StepRecord, state: Any) -> None:
    form = StepForm(FORMAT)
    data = written(form, replace(step, state=STATE)) | {"doors_of_the_house": state}
    with pytest.raises(MALFORMED):
        form.decode(data, {}, {None: {}})


def test_a_command_of_another_action_is_refused(step: StepRecord) -> None:
    form, command = StepForm(StateFormat()), timed.velocity(0.1, 0.0, 0.0, 1.0)
    good = replace(step, action=command.action, command=command)
    assert form.decode(written(form, good), {}, {None: {}}).command == command
    for action in ("move_forward", "waypoint_control", None):
        with pytest.raises(MALFORMED):
            form.decode(written(form, good) | {"action": action}, {}, {None: {}})


def test_viewers_take_the_schema() -> None:
    schemas = {channel.topic: json.loads(channel.schema) for channel in channels(FORMAT)[:3]}
    assert fields_of(schemas["/step"])["doors_of_the_house.last.angle_deg"] == "float64"
    assert schemas["/step"]["properties"]["doors_of_the_house"]["description"].startswith("what is open")
    assert list(schemas["/objects"]["properties"]) == ["index", "doors"]


@pytest.mark.parametrize(
    ("older", "command"),
    [
        (
            {"linear_m_s": 0.1, "angular_rad_s": 0.2, "tilt_rad_s": 0.3, "duration_s": 0.5},
            timed.velocity(0.1, 0.2, 0.3, 0.5),
        ),
        (
            {"x_m": 0.1, "y_m": 0.2, "yaw_rad": 0.3, "tilt_rad": 0.4, "max_duration_s": 5.0},
            timed.waypoint(0.1, 0.2, 0.3, 0.4, 5.0),
        ),
    ],
)
def test_velocities_and_waypoints_of_older_logs_are_read(step: StepRecord, older: Any, command: TimedAction) -> None:
    form = StepForm(StateFormat())
    data = written(form, replace(step, action=command.action, command=command))
    assert form.decode(data, {}, {None: {}}).command == command
    assert form.decode(data | {"command": older}, {}, {None: {}}).command == command


def test_trajectories_round_trip(step: StepRecord) -> None:
    form, command = StepForm(StateFormat()), timed.trajectory([[0.1, 0.0], [0.2, 0.1]], 0.25, 5, 0.7)
    data = written(form, replace(step, action=command.action, command=command))
    assert form.decode(data, {}, {None: {}}).command == command
