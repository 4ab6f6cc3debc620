"""The pure mathematics of a leg: its arc, its duration, and the speeds with which it is covered."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common.geometry import SE2
from robot_runtime.motion.leg import Leg, approach_speed, braking_speed

distances = st.floats(-1, 1).filter(lambda distance: abs(distance) > 1e-3)
turns = st.floats(-3, 3).filter(lambda turn: abs(turn) > 1e-3)
accels = st.floats(0.1, 5)
LIMITS = (0.3, 1.5, 1.0, 3.5)


@given(forward_m=distances, turn_rad=turns, share=st.floats(0, 1))
def test_a_leg_is_an_arc(forward_m: float, turn_rad: float, share: float) -> None:
    pose, steps = SE2(), 500
    for _ in range(steps):
        step_m, step_rad = forward_m * share / steps, turn_rad * share / steps
        pose = pose @ SE2(step_m / 2, 0.0, step_rad) @ SE2(step_m / 2, 0.0, 0.0)
    arc = Leg(forward_m, turn_rad, *LIMITS).pose(share)
    assert arc.distance_to(pose) < 1e-4
    assert math.remainder(arc.yaw_rad - pose.yaw_rad, 2 * math.pi) == pytest.approx(0.0, abs=1e-6)


@given(
    forward_m=st.one_of(st.just(0.0), distances), turn_rad=turns, share=st.floats(-0.2, 1.2), off=st.floats(-0.1, 0.1)
)
def test_the_share_that_is_done_is_found_from_a_pose_and_a_share_nearby(
    forward_m: float, turn_rad: float, share: float, off: float
) -> None:
    leg = Leg(forward_m, turn_rad, *LIMITS)
    found = share + off
    for _ in range(5):
        found = leg.share(leg.pose(share), found)
    assert found == pytest.approx(share, abs=1e-2)


@pytest.mark.parametrize(
    ("leg", "duration_s"),
    [
        (Leg(0.25, 0.0, *LIMITS), 0.25 / 0.3 + 0.3 / 1.0),  # trapezoid
        (Leg(0.0, math.radians(30), *LIMITS), 2 * math.sqrt(math.radians(30) / 3.5)),  # triangle
        (Leg(-0.3, 3.0, *LIMITS), 3.0 / 1.5 + 1.5 / 3.5),  # an arc: the turn takes longer
    ],
)
def test_a_leg_takes_the_least_time_that_the_limits_allow(leg: Leg, duration_s: float) -> None:
    assert leg.duration_s == pytest.approx(duration_s)


def test_the_wheels_of_a_turn_about_one_wheel() -> None:
    left_m, right_m = Leg(0.115 * 0.5, 0.5, *LIMITS).wheels_m(0.23)
    assert (left_m, right_m) == (pytest.approx(0.0), pytest.approx(0.115))


@given(left=st.floats(0, 1), speed=st.floats(0, 1), accel=accels)
def test_braking_comes_to_rest_at_the_end(left: float, speed: float, accel: float) -> None:
    period_s, covered = 0.001, 0.0
    speed = min(speed, math.sqrt(2 * accel * left))
    for _ in range(20000):
        after = braking_speed(left - covered, speed, accel, period_s)
        covered += (speed + after) / 2 * period_s
        speed = after
        if not speed:
            break
    assert covered == pytest.approx(left, abs=1e-3)


@given(left=st.floats(0, 1), accel=accels, tail_s=st.floats(0.05, 0.5))
def test_an_approach_never_brakes_harder_than_allowed(left: float, accel: float, tail_s: float) -> None:
    assert approach_speed(0.0, accel, tail_s) == approach_speed(-left, accel, tail_s) == 0.0
    here, step = approach_speed(left, accel, tail_s), 1e-6
    slope = (approach_speed(left + step, accel, tail_s) - here) / step
    assert slope * here <= accel * 1.01 + 1e-6
