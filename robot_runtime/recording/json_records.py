"""Lossless serialization of records as JSON: the codecs of the records."""

import zlib
from collections.abc import Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.timed import TimedAction
from robot_runtime.hal import BaseState, PoseEstimate, RgbdFrame, Zone
from robot_runtime.hal.events import Event
from robot_runtime.policy import Observation
from robot_runtime.recording.codec import INTEGER, NUMBER, Codec, Special, codec_of, columns_codec, described, optional
from robot_runtime.recording.json_output import plain
from robot_runtime.recording.json_values import finite, integer
from robot_runtime.records import PHASES, ActionResult, EpisodeEnd, SentCommand, StepRecord

_INTEGERS = tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
_DTYPES = {name: np.dtype(name) for name in ("bool", "str", "float16", "float32", "float64", *_INTEGERS)}

IMAGE_MIN_DIMENSIONS = 2
"""Arrays of at least so many dimensions are images, which are logged as digests, not as numbers."""


# --- values whose form does not follow from their types -------------------------------------------------------------


def array_to_json(array: NDArray[Any]) -> dict[str, Any]:
    """Convert an observation to numbers, or an image to the digest by which a rebuilt image is checked."""
    array = np.asarray(array)
    name = "str" if array.dtype.kind == "U" else array.dtype.name  # numpy's name of text has its length
    described: dict[str, Any] = {"dtype": name, "shape": list(array.shape)}
    if array.ndim >= IMAGE_MIN_DIMENSIONS:
        return {**described, "crc32": zlib.crc32(np.ascontiguousarray(array).data)}
    return {**described, "data": plain(array.ravel())}


def array_from_json(data: Mapping[str, Any]) -> NDArray[Any]:
    """The inverse of :func:`array_to_json` for an array that is not an image."""
    kind = data["dtype"]
    if kind not in _DTYPES:
        raise ValueError(f"arrays of {kind!r:.50} are not read")
    array: NDArray[Any] = np.array(data["data"], _DTYPES[kind])  # numpy reads Infinity and NaN, too
    shape = tuple(map(integer, data["shape"]))
    return array if array.shape == shape else array.reshape(shape)


def numbers_of(observation: Mapping[str, Any]) -> Observation:
    """The observation in a step's JSON, without its images."""
    return {name: array_from_json(array) for name, array in observation.items() if "data" in array}


def _frame(data: Mapping[str, Any]) -> RgbdFrame:
    return RgbdFrame(integer(data["stamp_ns"]), _NO_RGB, _NO_DEPTH)


def _summary(frame: RgbdFrame) -> dict[str, Any]:
    return {"stamp_ns": frame.stamp_ns, "shape": list(frame.depth_m.shape), "semantic": frame.semantic is not None}


def _zone(names: list[str]) -> Zone:
    if names == []:
        return _NO_ZONE
    zone = _NO_ZONE
    for name in names:
        zone |= Zone[name.upper()]
    return zone


def _covariance(rows: list[list[float]]) -> NDArray[np.float64]:
    if rows == _EXACT_ROWS:
        return _EXACT
    covariance = np.array(rows, np.float64)  # numpy reads Infinity and NaN, too
    if covariance.shape != (3, 3):
        raise ValueError(f"a covariance has the shape {covariance.shape}")
    return covariance


def _with_bits(codec: Codec) -> Codec:
    """A base state's codec with its zones also as bits, which viewers can plot."""
    zones = {name: f"{name}_bits" for name in ("bumper", "cliff", "wheel_drop")}
    about = {"type": "integer", "description": "for plots: 1 left + 2 center + 4 right", "minimum": 0}
    schema = {"type": "object", "properties": {**codec.properties, **dict.fromkeys(zones.values(), about)}}
    names = [field.name for field in fields(BaseState)]
    values = attrgetter(*names, *(f"{name}.value" for name in zones))
    keys = *names, *zones.values()
    return replace(codec, schema=schema, encode=lambda state: dict(zip(keys, values(state), strict=True)))


def _with_older_forms(codec: Codec) -> Codec:
    """A timed action's codec that reads the velocities and waypoints of older logs, too."""

    def decode(data: Mapping[str, Any]) -> Any:
        if "points" in data:
            return codec.decode(data)
        from robot_runtime.actions.timed_values import timed_from

        return timed_from(data)

    return replace(codec, decode=decode)


_NO_RGB, _NO_DEPTH = np.empty((0, 0, 3), np.uint8), np.empty((0, 0), np.float32)
_NO_ZONE = Zone.NONE
_EXACT = np.zeros((3, 3))
_EXACT.flags.writeable = False
_EXACT_ROWS: list[list[float]] = _EXACT.tolist()

SPECIAL: Special = {
    Zone: Codec(_zone, {"type": "array", "items": {"type": "string", "enum": ["left", "center", "right"]}}),
    RgbdFrame: Codec(
        _frame,
        {
            "type": "object",
            "properties": {
                "stamp_ns": INTEGER.schema,
                "shape": {"type": "array", "items": INTEGER.schema},
                "semantic": {"type": "boolean"},
            },
        },
        _summary,
    ),
    BaseState: _with_bits,
    PoseEstimate: described("its covariance has 3 rows: x, y, yaw"),
    (PoseEstimate, "covariance"): Codec(_covariance, {}),
    ActionResult: described("null without an action"),
    TimedAction: _with_older_forms,
    (StepRecord, "command"): lambda codec: optional(described("null with a discrete action")(codec)),
    (StepRecord, "observation"): Codec(
        numbers_of,
        {"type": "object", "description": "numbers or text, or for an image its CRC-32"},
        lambda observation: {name: array_to_json(array) for name, array in observation.items()},
    ),
    (StepRecord, "phase_s"): Codec(
        lambda data: {name: finite(seconds) for name, seconds in data.items()},
        {"type": "object", "properties": dict.fromkeys(PHASES, NUMBER.schema)},
    ),
    (ActionResult, "pursued"): lambda codec: optional(described("null where the action settles")(codec)),
    (EpisodeEnd, "action"): optional,
    (EpisodeEnd, "result"): optional,
    (EpisodeEnd, "of_policy"): optional,
}
"""What does not follow from the types of the records, and what older logs lack."""


# --- records --------------------------------------------------------------------------------------------------------

BASE = codec_of(BaseState, SPECIAL)
COMMANDS = columns_codec(SentCommand, SPECIAL)
EVENT = codec_of(Event, SPECIAL)
END = codec_of(EpisodeEnd, SPECIAL)
