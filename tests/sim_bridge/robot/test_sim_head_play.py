"""A simulated tilt servo with play: the camera lags behind, and the servo's own state does not know."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common.clock import SimulatedClock, seconds_to_ns
from sim_bridge.robot.head import HeadOptions, SimHead

CLOCK_STEP_NS = 5_000_000
TILTS = st.lists(st.floats(-60, 60), min_size=1, max_size=6)


def head(zero_deg: float, backlash_deg: float) -> tuple[SimulatedClock, SimHead]:
    clock = SimulatedClock(CLOCK_STEP_NS)
    made = SimHead(clock, HeadOptions(tilt_zero_deg=zero_deg, tilt_backlash_deg=backlash_deg))
    made.connect()
    return clock, made


def turn(clock: SimulatedClock, moved: SimHead, tilt_deg: float, wait_s: float = 3.0) -> float:
    """Direction of the camera, degrees, after a command and a while."""
    moved.command(0.0, math.radians(tilt_deg))
    clock.sleep_until(clock.now_ns() + seconds_to_ns(wait_s))
    return math.degrees(moved.camera_angles(clock.now_ns())[1])


def test_without_play_the_camera_is_the_servo() -> None:
    clock, made = head(0.0, 0.0)
    for tilt_deg in (10.0, -20.0, -20.0, 5.0):
        turn(clock, made, tilt_deg, wait_s=0.1)
        assert made.camera_angles(clock.now_ns()) == made.angles(clock.now_ns())


def test_half_the_play_is_missing_from_either_side() -> None:
    clock, made = head(1.0, 0.8)
    assert turn(clock, made, 10.0) == pytest.approx(10.6)
    assert turn(clock, made, -10.0) == pytest.approx(-8.6)
    # A quarter of the play back: nothing is drawn along yet.
    assert turn(clock, made, -9.8) == pytest.approx(-8.6)
    assert turn(clock, made, -9.0) == pytest.approx(-8.4)
    assert made.state(1.0).tilt_rad == pytest.approx(math.radians(-9.0))


@given(TILTS, st.floats(-5, 5), st.floats(0, 5))
def test_the_camera_is_never_farther_off_than_half_the_play(
    tilts_deg: list[float], zero_deg: float, backlash_deg: float
) -> None:
    clock, made = head(zero_deg, backlash_deg)
    for tilt_deg in tilts_deg:
        for wait_s in (0.1, 3.0):
            looks_deg = turn(clock, made, tilt_deg, wait_s)
            servo_deg = math.degrees(made.angles(clock.now_ns())[1])
            assert abs(looks_deg - zero_deg - servo_deg) <= backlash_deg / 2 + 1e-9
