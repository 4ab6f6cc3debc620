"""Messages of remote policies: arrays, decisions and damaged bytes."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.actions import timed
from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.errors import RuntimeFault
from robot_runtime.policies.remote.protocol import (
    ProtocolError,
    decision_to_message,
    decisions_from_message,
    observation_from_message,
    observation_to_message,
    pack,
    unpack,
)
from robot_runtime.tasks.task import load_task


def test_arrays_are_written_for_openpis_decoder_and_for_msgpack_numpys() -> None:
    """Both look for a key of their own and read the same data: openpi_client 0.1.2, msgpack-numpy 0.4.8."""
    both = {b"data": b"\x01\x00\x02\x00", b"shape": [1, 2]}
    openpi, msgpack_numpy = {b"__ndarray__": True, b"dtype": "<i2"}, {b"nd": True, b"type": "<i2", b"kind": b""}
    packed = pack({"state": np.array([[1, 2]], np.int16), "scalar": np.float32(1.5)})
    assert msgpack.unpackb(packed) == {
        "state": {**both, **openpi, **msgpack_numpy},
        "scalar": {b"__npgeneric__": True, b"data": 1.5, b"dtype": "<f4"},
    }
    for own in (openpi, msgpack_numpy):
        back = unpack(msgpack.packb({"a": {**both, **own}}))["a"]
        assert (back.dtype, back.tolist()) == (np.int16, [[1, 2]])


def test_scalars_of_msgpack_numpy_are_read_and_its_pickles_refused() -> None:
    scalar = {b"nd": False, b"type": "<f4", b"data": np.float32(2.5).tobytes()}
    back = unpack(msgpack.packb({"a": scalar}))["a"]
    assert (type(back), back) == (np.float32, 2.5)
    pickled = {b"nd": True, b"type": "|O", b"kind": b"O", b"shape": [1], b"data": b"\x80\x04."}
    for damaged in (pickled, {**scalar, b"data": b"\x00"}, {**scalar, b"data": 2.5}, {b"nd": True, b"data": b""}):
        with raises_naming(ProtocolError, "cannot be read"):
            unpack(msgpack.packb({"a": damaged}))


@pytest.mark.parametrize("dtype", ["bool", "u1", "i8", "<f2", ">f4", "f8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_arrays_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    back = unpack(pack({"a": array}))["a"]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("value", [np.array(["text"]), np.array([None]), np.zeros(2, "f4,i4"), np.zeros(2, "c16"), {1}])
def test_arrays_of_objects_are_not_sent(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        pack({"a": value})


def test_text_observations_round_trip() -> None:
    observation = {"depth": np.full((4, 5, 1), 0.5, np.float32), "instruction": np.array("go")}
    back = observation_from_message(unpack(pack(observation_to_message(observation))))
    assert np.array_equal(back["depth"], observation["depth"])
    assert back["instruction"] == np.array("go")
    assert back["instruction"].dtype.kind == "U"


@pytest.mark.parametrize(
    "decision",
    [
        Action.TURN_LEFT,
        timed.trajectory([[0.1, 0.0], [0.2, 0.01]], 0.25, 7),
        timed.velocity(0.1, -0.2, 0.0, 0.1),
        timed.waypoint(0.1, 0.2, 0.3, 0.0, 5.0),
    ],
)
def test_decisions_round_trip(decision: Decision) -> None:
    task = load_task("objectnav_hm3d2023")
    message = unpack(pack(decision_to_message(decision, task)))
    assert decisions_from_message(message, task, "p") == (decision,)
    assert message["actions"].ndim == 2


@pytest.mark.parametrize(
    ("answer", "decisions"),
    [
        (
            {"trajectory": np.array([[0.1, 0.0, 0.0], [0.2, 0.1, 0.4]]), "period_s": 0.1, "exposure_ns": 5, "info": {}},
            (timed.trajectory([(0.1, 0.0, 0.0), (0.2, 0.1, 0.4)], 0.1, 5),),
        ),
        ({"linear_m_s": 0.2, "angular_rad_s": 0.0, "settle": False}, (timed.velocity(0.2, 0.0, settle=False),)),
        ({"chunk": [1, {"action": "turn_left"}, 0], "carry_out": 2}, (Action.MOVE_FORWARD, Action.TURN_LEFT)),
        ({"action": 2, "period_s": 3}, (Action.TURN_LEFT,)),
    ],
)
def test_a_foreign_server_may_answer_every_form(answer: dict[str, Any], decisions: tuple[Decision, ...]) -> None:
    message = unpack(pack(answer | {"server_timing": {"infer_ms": 1.0}}))
    assert decisions_from_message(message, load_task("objectnav_hm3d2023"), "p") == decisions


@pytest.mark.parametrize(
    "answer",
    [
        {"trajectory": [[0.1]], "period_s": 0.1},
        {"trajectory": [["x", 0.0]], "period_s": 0.1},
        {"chunk": []},
        {"command": {"linear_m_s": 0.1, "angular_rad_s": 0.0}, "action": "waypoint_control"},
        {"command": {"speed": 1.0}, "action": "velocity_control"},
        {"actions": [[1.0]]},
    ],
)
def test_what_is_no_decision_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(RuntimeFault) as caught:
        decisions_from_message(unpack(pack(answer)), load_task("objectnav_hm3d2023"), "p")
    assert caught.value.remedy
