"""A base that obeys nothing is named within a second; slow motors are not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from drivers.ros.base.dead_base import DeadBase, MotionWatch
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Velocity
from robot_runtime.hal.motors import MAX_DEAD_TIME_S
from robot_runtime.safety.guard import STILL

PERIOD_S = 0.05
FORWARD = Velocity(0.1, 0.0)


def test_a_base_that_does_not_move_is_named_within_a_second() -> None:
    watch, commanded_s = MotionWatch(), 2.0
    for tick in range(round((commanded_s + 0.9) / PERIOD_S)):
        now_ns = seconds_to_ns(tick * PERIOD_S)
        watch.odometry(SE2(1.0, 2.0, 0.5), now_ns)
        watch.command(FORWARD if tick * PERIOD_S >= commanded_s else STILL, now_ns)
    with raises_naming(DeadBase, "does not move", "hazard"):
        watch.odometry(SE2(1.0, 2.0, 0.5), seconds_to_ns(commanded_s + 1.0))


def test_a_base_that_dies_while_it_drives_is_named_too() -> None:
    watch, named_s = MotionWatch(), 0.0
    for tick in range(60):
        now_s = tick * PERIOD_S
        watch.command(FORWARD, seconds_to_ns(now_s))
        try:
            watch.odometry(SE2(0.1 * min(now_s, 1.0), 0.0, 0.0), seconds_to_ns(now_s))
        except DeadBase:
            named_s = named_s or now_s
    assert 1.0 < named_s <= 2.0


@given(
    dead_time_s=st.floats(0.0, MAX_DEAD_TIME_S),
    lag_s=st.floats(0.0, 0.3),
    phase_s=st.floats(0.0, PERIOD_S),
    speed=st.sampled_from((Velocity(0.05), Velocity(0.3), Velocity(0.0, 0.3), Velocity(0.0, -1.5), Velocity(-0.1))),
)
@settings(max_examples=50)
def test_no_start_of_slow_motors_counts_as_dead(
    dead_time_s: float, lag_s: float, phase_s: float, speed: Velocity
) -> None:
    """As slow as any motors that the runtime's own model allows, and slower than every documented base."""
    watch, pose = MotionWatch(), SE2()
    for tick in range(60):
        now_s = phase_s + tick * PERIOD_S
        since_s = now_s - 0.2 - dead_time_s
        share = 0.0 if since_s <= 0 else 1.0 if lag_s == 0 else 1.0 - math.exp(-since_s / lag_s)
        pose = pose @ SE2.arc(share * speed.linear_m_s * PERIOD_S, share * speed.angular_rad_s * PERIOD_S)
        watch.command(speed if now_s >= 0.2 else STILL, seconds_to_ns(now_s))
        watch.odometry(pose, seconds_to_ns(now_s))


@pytest.mark.parametrize("command", [STILL, Velocity(0.01, 0.0), Velocity(0.0, 0.1)])
def test_a_base_that_is_not_told_to_move_may_stand(command: Velocity) -> None:
    watch = MotionWatch()
    for tick in range(100):
        watch.command(command, seconds_to_ns(tick * PERIOD_S))
        watch.odometry(SE2(), seconds_to_ns(tick * PERIOD_S))
