"""Pairs by exact stamps, and which poses are believed: pure parts of the ROS driver, with properties."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drivers.ros_locobot.camera.pairing import ExactPairs
from drivers.ros_locobot.localizer.motion_history import MotionHistory
from drivers.ros_locobot.localizer.pose_gate import GateLimits, PoseGate
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate, PoseStatus

MS = 1_000_000


def picture(content: bytes = b"x") -> Any:
    return SimpleNamespace(data=content)


# --- pairs ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=80))
def test_only_equal_stamps_make_pairs_and_they_come_in_order(arrivals: list[tuple[bool, int]]) -> None:
    pairs = ExactPairs(waiting=5, stored=100)
    seen: list[int] = []
    for is_color, stamp_ns in arrivals:
        (pairs.add_color if is_color else pairs.add_depth)(stamp_ns, picture(bytes([stamp_ns, is_color])))
        newest = pairs.newest()
        if newest is not None and newest.stamp_ns not in seen:
            seen.append(newest.stamp_ns)
            assert newest.color.data == bytes([newest.stamp_ns, True])
            assert newest.depth.data == bytes([newest.stamp_ns, False])
    assert seen == sorted(seen)
    both = {s for c, s in arrivals if c} & {s for c, s in arrivals if not c}
    assert set(seen) <= both


def test_streams_out_of_step_pair_as_long_as_they_may_wait() -> None:
    pairs = ExactPairs(waiting=3, stored=10)
    for stamp_ns in range(10):
        pairs.add_color(stamp_ns, picture())
    for stamp_ns in range(10):
        pairs.add_depth(stamp_ns, picture())
    first = pairs.first_after(0)
    assert first is not None
    assert first.stamp_ns == 7, "the oldest were let go: memory is bounded"
    assert pairs.dropped == 11, "seven colour images, and four of the seven depth images left over"


def test_the_first_pair_after_an_instant() -> None:
    pairs = ExactPairs(waiting=3, stored=10)
    for stamp_ns in (10, 20, 30):
        pairs.add_color(stamp_ns, picture())
        pairs.add_depth(stamp_ns, picture())
    assert [getattr(pairs.first_after(after), "stamp_ns", None) for after in (0, 10, 11, 30, 31)] == [
        10,
        10,
        20,
        30,
        None,
    ]


def test_content_stays_the_same_while_both_pictures_do() -> None:
    pairs = ExactPairs(waiting=3, stored=10)
    for stamp_ns, color, depth in ((1, b"a", b"d"), (2, b"a", b"d"), (3, b"a", b"e"), (4, b"a", b"e"), (5, b"b", b"e")):
        pairs.add_color(stamp_ns, picture(color))
        pairs.add_depth(stamp_ns, picture(depth))
    found = [pairs.first_after(stamp_ns) for stamp_ns in range(1, 6)]
    assert [pair.unchanged_since_ns for pair in found if pair is not None] == [1, 1, 3, 3, 5]


# --- motion ---------------------------------------------------------------------------------------------------------


def test_motion_is_told_from_standing_still() -> None:
    motion = MotionHistory()
    for step in range(11):
        motion.odom(step * 100 * MS, SE2(0.01 * step, 0.0, 0.0))
        motion.head(step * 100 * MS, 0.0, 0.0)
    assert not motion.moved(0, 200 * MS)
    assert motion.moved(0, 1000 * MS)
    assert not motion.moved(5 * NS_PER_S, 6 * NS_PER_S), "what is not known has not moved"


def test_a_nod_is_motion() -> None:
    motion = MotionHistory()
    for step in range(5):
        motion.head(step * MS, 0.0, -0.1 * step)
    assert motion.moved(0, 4 * MS)


# --- gate -----------------------------------------------------------------------------------------------------------

LIMITS = GateLimits(max_std_m=0.5, max_std_rad=0.3, max_jump_m=0.3, max_jump_rad=0.3, recover_s=1.0)


def estimate(at_ms: int, x_m: float, std_m: float = 0.01) -> PoseEstimate:
    return PoseEstimate(at_ms * MS, SE2(x_m, 0.0, 0.0), "map", np.diag([std_m**2, std_m**2, 1e-4]))


def driving(speed_m_s: float) -> Any:
    return lambda stamp_ns: PoseEstimate(stamp_ns, SE2(speed_m_s * stamp_ns / NS_PER_S, 0.0, 0.0), "odom")


def test_a_source_that_agrees_with_odometry_is_believed() -> None:
    gate = PoseGate(LIMITS, driving(0.5))
    statuses = [gate.check(estimate(ms, 2.0 + 0.5 * ms / 1000)).status for ms in range(0, 3000, 100)]
    assert set(statuses) == {PoseStatus.OK}


def test_a_jump_is_lost_until_it_has_held_for_a_while() -> None:
    gate = PoseGate(LIMITS, driving(0.0))
    gate.check(estimate(0, 0.0))
    statuses = {ms: gate.check(estimate(ms, 1.0)).status for ms in range(100, 1600, 100)}
    assert statuses[100] is PoseStatus.LOST
    assert statuses[1000] is PoseStatus.LOST
    assert statuses[1100] is PoseStatus.OK, "it has relocalised"


def test_the_reason_says_how_far_it_jumped() -> None:
    gate = PoseGate(LIMITS, driving(0.0))
    gate.check(estimate(0, 0.0))
    gate.check(estimate(100, 1.0))
    assert gate.reason == "it jumped by 1.00 m and 0 degrees against odometry"


def test_an_outlier_costs_one_estimate() -> None:
    gate = PoseGate(LIMITS, driving(0.0))
    judged = [gate.check(estimate(ms, x_m)).status for ms, x_m in ((0, 0.0), (100, 5.0), (200, 0.0), (300, 0.1))]
    assert judged == [PoseStatus.OK, PoseStatus.LOST, PoseStatus.OK, PoseStatus.OK]


def test_poses_that_jump_about_are_never_believed() -> None:
    gate = PoseGate(LIMITS, driving(0.0))
    gate.check(estimate(0, 0.0))
    statuses = {gate.check(estimate(100 + 100 * i, 1.0 + i % 2)).status for i in range(50)}
    assert statuses == {PoseStatus.LOST}


def test_a_large_covariance_is_lost_and_then_is_not() -> None:
    gate = PoseGate(LIMITS, driving(0.0))
    judged = [gate.check(estimate(ms, 0.0, std)).status for ms, std in ((0, 0.1), (100, 0.6), (200, 0.1))]
    assert judged == [PoseStatus.OK, PoseStatus.LOST, PoseStatus.OK]
    assert gate.reason == ""


def test_odometry_that_comes_a_message_later_is_no_licence_to_jump() -> None:
    motion = MotionHistory()
    gate = PoseGate(LIMITS, motion.known_by)
    statuses = []
    for ms in range(0, 3000, 20):
        statuses.append(gate.check(estimate(ms, 0.3 * ms / 1000 + (1.0 if ms >= 1000 else 0.0))).status)
        motion.odom(ms * MS, SE2(0.3 * ms / 1000, 0.0, 0.0))
    assert statuses[:50] == [PoseStatus.OK] * 50
    assert statuses[50:100] == [PoseStatus.LOST] * 50
    assert statuses[110:] == [PoseStatus.OK] * 40, "it has held for recover_s"


def test_without_odometry_a_pose_may_be_as_far_as_the_robot_can_drive() -> None:
    gate = PoseGate(LIMITS, lambda _: None)
    gate.check(estimate(0, 0.0))
    assert gate.check(estimate(1000, 0.9)).status is PoseStatus.OK
    assert gate.check(estimate(1100, 3.0)).status is PoseStatus.LOST


def test_being_placed_is_no_jump() -> None:
    gate = PoseGate(LIMITS, driving(0.0))
    gate.check(estimate(0, 0.0))
    gate.reset()
    assert gate.check(estimate(100, 7.0)).status is PoseStatus.OK


@given(st.floats(-math.pi, math.pi), st.floats(-0.25, 0.25))
def test_headings_are_compared_the_shorter_way_round(yaw_rad: float, error_rad: float) -> None:
    gate = PoseGate(LIMITS, driving(0.0))
    gate.check(PoseEstimate(0, SE2(0, 0, yaw_rad), "map"))
    turned = PoseEstimate(100 * MS, SE2(0, 0, yaw_rad + error_rad + 2 * math.pi), "map")
    assert gate.check(turned).status is PoseStatus.OK
