"""Messages of remote policies: msgpack with numpy arrays.

An array is written for two decoders at once, openpi's (``openpi_client/msgpack_numpy.py``) and the package
msgpack-numpy, which MolmoSpaces uses; both encodings are read.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, astuple
from typing import Any

import msgpack
import numpy as np

from robot_runtime.actions.timed import Decision, TimedAction
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import PolicyError
from robot_runtime.policies.agents.habitat import HabitatInterface
from robot_runtime.policy import Observation
from robot_runtime.tasks.task import Task

PROTOCOL = 1
EXTENSION = "robot_runtime"
"""Key of the fields in a message that openpi's protocol does not have."""

TOKEN_VARIABLE = "ROBOT_RUNTIME_TOKEN"
"""Environment variable with the token, which on a command line all users of the machine could read."""

MAX_REQUEST_BYTES = 64 << 20
"""640x480 RGB-D has 2.2 MB; 1080p with a few more images fits."""

MAX_ANSWER_BYTES = 1 << 20

_ARRAY, _SCALAR, _DATA, _DTYPE, _SHAPE = b"__ndarray__", b"__npgeneric__", b"data", b"dtype", b"shape"
_ND, _TYPE, _KIND = b"nd", b"type", b"kind"  # msgpack-numpy 0.4.8; its data and shape have openpi's keys
_DTYPES = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
_MAX_DIMENSIONS = 8
_KEYS = (
    *(
        "chunk",
        "carry_out",
        "trajectory",
        "period_s",
        "linear_m_s",
        "angular_rad_s",
        "tilt_rad_s",
        "duration_s",
        "settle",
    ),
    *("x_m", "y_m", "yaw_rad", "tilt_rad", "max_duration_s", "points", "exposure_ns", "max_age_s"),
)


class ProtocolError(PolicyError):
    """The received bytes are not a message."""


def pack(message: Mapping[Any, Any]) -> bytes:
    """A message as bytes. Raises ``TypeError`` for values that msgpack cannot represent."""
    packed: bytes = msgpack.packb(message, default=_described)
    return packed


def unpack(data: object) -> dict[Any, Any]:
    """Decode a message. Arrays are read-only and share the memory of ``data``.

    Raises:
        ProtocolError: it is not a message, or has an array of another type than bool, integer and float.
    """
    if not isinstance(data, bytes):
        raise ProtocolError(
            f"text arrived where a message was expected: {data!r:.200}", "use msgpack, in binary frames"
        )
    try:
        message = msgpack.unpackb(data, object_hook=_restored, strict_map_key=True)
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise ProtocolError(
            f"a message cannot be read: {error!r:.200}", "use msgpack and openpi's numpy arrays"
        ) from error
    if not isinstance(message, dict):
        raise ProtocolError(f"a message is a {type(message).__name__}, not a dictionary", "send a dictionary")
    return message


def observation_to_message(observation: Observation) -> dict[str, Any]:
    """The observation as a message; text arrays become strings."""
    return {name: str(array) if array.dtype.kind == "U" else array for name, array in observation.items()}


def observation_from_message(message: Mapping[Any, Any]) -> Observation:
    """The inverse of :func:`observation_to_message`, without the values that are not observations."""
    observation: Observation = {}
    for name, value in message.items():
        if isinstance(name, str) and isinstance(value, np.ndarray | np.generic | str):
            observation[name] = np.asarray(value)
    return observation


def decision_to_message(decision: Decision, task: Task) -> dict[str, Any]:
    """A decision by name, and as ``actions``, which clients of openpi read.

    ``actions`` is (1, 1): the position in the task's actions; or (n, 7), of a continuous action's points: time, x, y,
    yaw, linear and angular velocity, tilt.
    """
    if isinstance(decision, TimedAction):
        rows = [
            (p.after_s, *astuple(p.pose or SE2()), p.linear_m_s, p.angular_rad_s, p.tilt_rad) for p in decision.points
        ]
        return {"action": decision.action.value, "command": asdict(decision), "actions": np.array(rows, np.float64)}
    return {"action": decision.value, "actions": np.array([[task.actions.index(decision)]], np.int64)}


def decisions_from_message(message: Mapping[Any, Any], task: Task, name: str) -> tuple[Decision, ...]:
    """The decisions in an answer, in the form of :func:`decision_to_message` or one that agents return.

    Raises:
        PolicyError: the answer has no decision.
        UnknownAction: the task does not have the action.
    """
    interface, command = HabitatInterface(name, {}), message.get("command")
    if command is not None:
        decisions, _ = interface.decisions(command, task)
        if not isinstance(decisions[0], TimedAction) or decisions[0].action != message.get("action"):
            raise interface.invalid_answer(message, "correct the policy server: docs/how-to/remote-policies.md")
        return decisions
    keys = ("action", "action_args") if "action" in message else _KEYS
    answer = {key: message[key] for key in keys if key in message}
    if not answer:
        raise PolicyError(
            f"policy {name!r} answered with {', '.join(map(str, list(message)[:8])) or 'nothing'}, but no 'action'",
            "have the server answer {'action': 'move_forward'}, or another form of docs/how-to/remote-policies.md",
        )
    return interface.decisions(answer, task)[0]


def _described(value: object) -> dict[bytes, Any]:
    if isinstance(value, np.ndarray) and _DTYPES.fullmatch(value.dtype.str):
        name, content = value.dtype.str, {_DATA: value.tobytes(), _SHAPE: value.shape}
        return {_ARRAY: True, _DTYPE: name, _ND: True, _TYPE: name, _KIND: b"", **content}
    if isinstance(value, np.generic) and _DTYPES.fullmatch(value.dtype.str):
        return {_SCALAR: True, _DATA: value.item(), _DTYPE: value.dtype.str}
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _restored(value: dict[Any, Any]) -> Any:
    if _ARRAY not in value and _SCALAR not in value and _ND not in value:
        return value
    dtype_name, data = value.get(_DTYPE, value.get(_TYPE)), value.get(_DATA)
    if isinstance(dtype_name, bytes):
        dtype_name = dtype_name.decode("ascii")
    if not isinstance(dtype_name, str) or not _DTYPES.fullmatch(dtype_name):
        raise ValueError(f"an array has dtype {dtype_name!r:.40}")
    dtype = np.dtype(dtype_name)
    if _SCALAR in value:
        if not isinstance(data, bool | int | float):
            raise ValueError("a scalar has no number")
        return dtype.type(data)
    shape = value.get(_SHAPE) if value.get(_ND, True) is True else []
    if not isinstance(shape, list) or len(shape) > _MAX_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"an array has shape {shape!r:.80}")
    if not isinstance(data, bytes) or len(data) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has other bytes than that")
    array = np.frombuffer(data, dtype).reshape(shape)
    return array if value.get(_ND, True) is True else array[()]
