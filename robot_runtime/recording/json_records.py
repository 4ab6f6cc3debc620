"""Lossless serialization of records as JSON.

Enum members are written by name, so that logs do not depend on their numbers. JSON has no infinity and no NaN: they
are written as the strings ``Infinity``, ``-Infinity`` and ``NaN``, which ``float()`` reads back.
"""

from __future__ import annotations

import functools
import json
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum, Flag
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.continuous import Command, VelocityCommand, WaypointCommand
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import writing
from robot_runtime.hal import (
    BaseState,
    Halt,
    HeadState,
    PoseEstimate,
    PoseStatus,
    RgbdFrame,
    Velocity,
    Zone,
)
from robot_runtime.hal.events import Event
from robot_runtime.policy import Observation
from robot_runtime.recording.json_values import integer, mapping, number, text, texts
from robot_runtime.records import (
    ActionResult,
    EndReason,
    EpisodeEnd,
    Outcome,
    Placement,
    SentCommand,
    StepRecord,
    StepTimes,
)
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose

_INTEGERS = tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
_DTYPES = {name: np.dtype(name) for name in ("bool", "str", "float16", "float32", "float64", *_INTEGERS)}

IMAGE_MIN_DIMENSIONS = 2
"""Arrays of at least so many dimensions are images, which are logged as digests, not as numbers."""


def plain(value: Any) -> Any:
    """Convert dataclasses, enums, arrays, paths and containers to types that JSON has.

    Raises:
        TypeError: an object has any other type.
    """
    return _conversion(type(value))(value)


def write_json(path: Path, value: Any) -> None:
    """Write a value as :func:`plain` converts it, indented. Raises ``RecordingError`` if the file cannot be written."""
    with writing(path):
        path.write_text(json.dumps(plain(value), indent=2) + "\n", encoding="utf-8")


def _find_conversion(kind: type) -> Callable[[Any], Any]:
    """The function that converts values of a type."""
    if issubclass(kind, Flag):
        return _flag_names
    if issubclass(kind, Enum):
        return lambda value: plain(value.value)
    if issubclass(kind, float):
        return lambda value: value if math.isfinite(value) else _NON_FINITE[str(value)]
    if issubclass(kind, (bool, int, str, type(None))):
        return lambda value: value
    if is_dataclass(kind):
        names = tuple(field.name for field in fields(kind))
        return lambda value: {name: plain(getattr(value, name)) for name in names}
    if issubclass(kind, Mapping):
        return lambda value: {str(key): plain(item) for key, item in value.items()}
    if issubclass(kind, (list, tuple)):
        return lambda value: [plain(item) for item in value]
    if issubclass(kind, (np.generic, np.ndarray)):
        return lambda value: plain(value.tolist())
    if issubclass(kind, PurePath):
        return str
    raise TypeError(f"a {kind.__name__} cannot be written as JSON")


_conversion: Callable[[type], Callable[[Any], Any]] = functools.cache(_find_conversion)
"""Each found once: a step of a log has a thousand values."""


def _flag_names(value: Flag) -> list[str]:
    return [str(member.name).lower() for member in type(value) if member.value and member in value] if value else []


_NON_FINITE = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def dumps(value: Any) -> bytes:
    """:func:`plain` as UTF-8 JSON, keys in the order given. Raises ``TypeError``."""
    return json.dumps(plain(value), allow_nan=False, separators=(",", ":")).encode()


# --- step -----------------------------------------------------------------------------------------------------------


def step_to_json(record: StepRecord, objects_since: int | None = None) -> dict[str, Any]:
    """The fields of a step for :func:`dumps`, without its frame and ``phase_s``, which depends on the host's speed.

    Args:
        record: the step.
        objects_since: the step with which the objects' poses were last written; None if there are none.
    """
    return {
        "index": record.index,
        "action": record.action,
        "command": record.command,
        "result": record.result,
        "observation": {name: array_to_json(array) for name, array in record.observation.items()},
        "frame": {
            "stamp_ns": record.frame.stamp_ns,
            "shape": list(record.frame.depth_m.shape),
            "semantic": record.frame.semantic is not None,
        },
        "pose": record.pose,
        "referee": record.referee,
        "base": base_to_json(record.base),
        "head": record.head,
        "times": record.times,
        "policy_info": record.policy_info,
        "objects": _objects_to_json(record, objects_since),
    }


def _objects_to_json(record: StepRecord, since: int | None) -> dict[str, Any] | None:
    if not (record.objects or record.held or record.grab or record.phase):
        return None
    return {"since": since, "held": list(record.held), "grab": record.grab, "phase": record.phase}


def step_from_json(
    data: Mapping[str, Any],
    observation: Observation,
    frame: RgbdFrame,
    phase_s: dict[str, float],
    objects: Mapping[str, ObjectPose],
) -> StepRecord:
    """The inverse of :func:`step_to_json`, with the data that it leaves out as arguments."""
    moving = data.get("objects")  # older logs have none
    head, times = data["head"], data["times"]
    return StepRecord(
        index=integer(data["index"]),
        action=None if data["action"] is None else _action(data["action"]),
        result=None if data["result"] is None else _result(data["result"]),
        observation=observation,
        frame=frame,
        pose=pose_from_json(data["pose"]),
        referee=pose_from_json(data["referee"]),
        base=base_from_json(data["base"]),
        head=HeadState(
            integer(head["stamp_ns"]), number(head["pan_rad"]), number(head["tilt_rad"]), bool(head["moving"])
        ),
        times=StepTimes(
            integer(times["action_start_ns"]),
            integer(times["action_end_ns"]),
            integer(times["exposed_ns"]),
            integer(times["observed_ns"]),
        ),
        policy_info=mapping(data["policy_info"]),
        phase_s=phase_s,
        objects=objects,
        held=texts(moving.get("held", [])) if moving else (),
        grab=_grab(moving.get("grab")) if moving else None,
        phase=text(moving.get("phase", "")) if moving else "",
        command=_command(data["action"], data.get("command")),
    )


def objects_from_json(data: Mapping[str, Any]) -> dict[str, ObjectPose]:
    """The inverse of :func:`plain` for poses by object id."""
    return {name: _object_pose(pose) for name, pose in data.items()}


def pose_from_json(data: Mapping[str, Any]) -> PoseEstimate:
    """The inverse of :func:`plain` for a pose."""
    rows, covariance = data["covariance"], _EXACT
    if rows != _EXACT_ROWS:
        covariance = np.array(rows, np.float64)  # numpy reads Infinity and NaN, too
        if covariance.shape != (3, 3):
            raise ValueError(f"a covariance has the shape {covariance.shape}")
    return PoseEstimate(
        integer(data["stamp_ns"]), _se2(data["pose"]), text(data["frame"]), covariance, _pose_status(data["status"])
    )


def placement_from_json(data: Mapping[str, Any]) -> Placement:
    """The inverse of :func:`plain` for a placement."""
    turned = data["error_rad"]
    return Placement(
        way=text(data["way"]),
        source=text(data["source"]),
        goal=_se2(data["goal"]),
        pose=_se2(data["pose"]),
        error_m=number(data["error_m"]),
        error_rad=None if turned is None else number(turned),
        scatter_m=number(data["scatter_m"]),
    )


def base_to_json(state: BaseState) -> dict[str, Any]:
    """Convert a base state, with its zones also as bits, which viewers can plot."""
    bits = {f"{name}_bits": getattr(state, name).value for name in ("bumper", "cliff", "wheel_drop")}
    return {**plain(state), **bits}


def base_from_json(data: Mapping[str, Any]) -> BaseState:
    """The inverse of :func:`base_to_json`."""
    return BaseState(
        stamp_ns=integer(data["stamp_ns"]),
        odom=_se2(data["odom"]),
        velocity=Velocity(number(data["velocity"]["linear_m_s"]), number(data["velocity"]["angular_rad_s"])),
        bumper=_zone(data["bumper"]),
        cliff=_zone(data["cliff"]),
        wheel_drop=_zone(data["wheel_drop"]),
        halt=_halt(data["halt"]),
        battery_v=number(data["battery_v"]),
        battery_fraction=number(data["battery_fraction"]),
    )


def commands_from_json(data: Mapping[str, Any]) -> list[SentCommand]:
    """Commands from their columns."""
    columns = (map(integer, data["stamp_ns"]), *(map(number, data[name]) for name in SentCommand._fields[1:]))
    return [SentCommand(*row) for row in zip(*columns, strict=True)]


def event_from_json(data: Mapping[str, Any]) -> Event:
    """The inverse of :func:`plain` for an event."""
    return Event(integer(data["stamp_ns"]), text(data["source"]), text(data["kind"]), text(data["detail"]))


def end_from_json(data: Mapping[str, Any]) -> EpisodeEnd:
    """The inverse of :func:`plain` for the last record."""
    action, result = data.get("action"), data.get("result")  # older logs have neither
    return EpisodeEnd(
        EndReason(data["reason"]),
        integer(data["steps"]),
        integer(data["stamp_ns"]),
        text(data["detail"]),
        None if action is None else Action(action),
        None if result is None else _result(result),
        data.get("of_policy") is True,
    )


def _result(data: Mapping[str, Any]) -> ActionResult:
    return ActionResult(
        outcome=_outcome(data["outcome"]),
        commanded=_displacement(data["commanded"]),
        measured=_displacement(data["measured"]),
        contact=_zone(data["contact"]),
        duration_s=number(data["duration_s"]),
        detail=text(data["detail"]),
    )


def _command(action: str | None, data: Mapping[str, Any] | None) -> Command | None:
    if data is None:  # a discrete action, or an older log
        return None
    kind = {kind.action.value: kind for kind in (VelocityCommand, WaypointCommand)}[str(action)]
    return kind(**{name: number(value) for name, value in data.items()})


def _displacement(data: Mapping[str, Any]) -> Displacement:
    forward_m, turn_rad, tilt_rad = data["forward_m"], data["turn_rad"], data["tilt_rad"]
    if type(forward_m) is type(turn_rad) is type(tilt_rad) is float:
        return Displacement(forward_m, turn_rad, tilt_rad)
    return Displacement(number(forward_m), number(turn_rad), number(tilt_rad))


def _se2(data: Mapping[str, Any]) -> SE2:
    x_m, y_m, yaw_rad = data["x_m"], data["y_m"], data["yaw_rad"]
    if type(x_m) is type(y_m) is type(yaw_rad) is float:  # nearly always; the calls cost more than the pose
        return SE2(x_m, y_m, yaw_rad)
    return SE2(number(x_m), number(y_m), number(yaw_rad))


def _object_pose(data: Mapping[str, Any]) -> ObjectPose:
    x, y, z = map(number, data["position"])
    w, i, j, k = map(number, data["quaternion"])
    return ObjectPose((x, y, z), (w, i, j, k), None if data["openness"] is None else number(data["openness"]))


def _grab(data: Mapping[str, Any] | None) -> Grab | None:
    if data is None:
        return None
    name = data["object_id"]
    return Grab(GrabOutcome(data["outcome"]), None if name is None else text(name), text(data["detail"]))


def _zone(names: list[str]) -> Zone:
    if names == []:
        return _NO_ZONE
    zone = _NO_ZONE
    for name in names:
        zone |= Zone[name.upper()]
    return zone


_NO_ZONE = Zone.NONE
_EXACT = np.zeros((3, 3))
_EXACT.flags.writeable = False
_EXACT_ROWS: list[list[float]] = _EXACT.tolist()

# Looked up once each: a call of an enum costs as much as a pose.
_action, _outcome = functools.cache(Action), functools.cache(Outcome)
_halt, _pose_status = functools.cache(Halt), functools.cache(PoseStatus)


# --- observations ---------------------------------------------------------------------------------------------------


def array_to_json(array: NDArray[Any]) -> dict[str, Any]:
    """Convert an observation to numbers, or an image to the digest by which a rebuilt image is checked."""
    array = np.asarray(array)
    name = "str" if array.dtype.kind == "U" else array.dtype.name  # numpy's name of text has its length
    described: dict[str, Any] = {"dtype": name, "shape": list(array.shape)}
    if array.ndim >= IMAGE_MIN_DIMENSIONS:
        return {**described, "crc32": image_digest(array)}
    return {**described, "data": plain(array.ravel())}


def array_from_json(data: Mapping[str, Any]) -> NDArray[Any]:
    """The inverse of :func:`array_to_json` for an array that is not an image."""
    kind = data["dtype"]
    if kind not in _DTYPES:
        raise ValueError(f"arrays of {kind!r:.50} are not read")
    array: NDArray[Any] = np.array(data["data"], _DTYPES[kind])  # numpy reads Infinity and NaN, too
    shape = tuple(map(integer, data["shape"]))
    return array if array.shape == shape else array.reshape(shape)


def image_digest(array: NDArray[Any]) -> int:
    """CRC-32 of the array's bytes in C order."""
    return zlib.crc32(np.ascontiguousarray(array).data)
