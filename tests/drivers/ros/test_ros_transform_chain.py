"""The chain from map to base over tf: rotations in space, the newest instant that all frames have, no extrapolation."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from drivers.ros.connection.received import Received
from drivers.ros.localizer.transform_chain import TransformChain
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.transforms import quaternion_rpy


def message(at_s: float, parent: str, child: str, x: float = 0.0, y: float = 0.0, rpy: Any = (0, 0, 0)) -> Received:
    seconds, nanoseconds = divmod(seconds_to_ns(at_s), 10**9)
    qx, qy, qz, qw = quaternion_rpy(*rpy)
    transform = SimpleNamespace(
        translation=SimpleNamespace(x=x, y=y, z=0.0), rotation=SimpleNamespace(x=qx, y=qy, z=qz, w=qw)
    )
    header = SimpleNamespace(frame_id=parent, stamp=SimpleNamespace(sec=seconds, nanosec=nanoseconds))
    item = SimpleNamespace(header=header, child_frame_id=child, transform=transform)
    return Received(SimpleNamespace(transforms=[item]), None, f"/{child}")


def test_the_newest_common_instant_is_interpolated() -> None:
    chain = TransformChain("map", "base")
    chain.add(message(0.0, "odom", "base", x=0.0, rpy=(0, 0, 3.0)))
    chain.add(message(1.0, "odom", "base", x=1.0, rpy=(0, 0, -3.0)))
    assert chain.newest() is None, "nothing leads to the map yet"
    chain.add(message(0.5, "/map", "odom", y=2.0))
    found = chain.newest()
    assert found is not None
    stamp_ns, pose, why = found
    assert (stamp_ns, why) == (seconds_to_ns(0.5), "")
    assert (pose.x_m, pose.y_m) == pytest.approx((0.5, 2.0))
    assert abs(pose.yaw_rad) == pytest.approx(math.pi), "the shorter way round"
    chain.add(message(3.0, "map", "odom", y=2.0))
    later = chain.newest()
    assert later is not None
    assert later[0] == seconds_to_ns(1.0), "a broadcaster that dates forward changes nothing"


def test_an_instant_before_the_oldest_is_not_known() -> None:
    chain = TransformChain("map", "base")
    chain.add(message(2.0, "odom", "base"))
    chain.add(message(1.0, "map", "odom"))
    assert chain.newest() is None


def test_a_tracker_whose_world_lies_on_its_side_is_turned_in_space() -> None:
    chain = TransformChain("map", "base")
    chain.add(message(0.0, "map", "world", rpy=(math.pi / 2, 0, 0)), is_static=True)
    chain.add(message(1.0, "world", "base", x=1.0, rpy=(-math.pi / 2, 0, 0.4)))
    found = chain.newest()
    assert found is not None
    _, pose, why = found
    assert pose.x_m == pytest.approx(1.0)
    assert "tilted" in why, "0.4 rad about the tracker's own axis is a tilt"
