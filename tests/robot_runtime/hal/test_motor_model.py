"""Stopping time and distance of a model of motors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.hal import BaseInfo
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.hal.motors import IDEAL_MOTORS, KOBUKI_MOTORS, MotorModel

INFO = BaseInfo("b", 0.18, 0.7, 3.0, 1.0, 7.0, rate_hz=50.0)


@given(
    travel_m=st.floats(0.001, 0.5),
    late_s=st.floats(0.005, 0.1),
    delay_s=st.floats(0, 0.5),
    accel_m_s2=st.one_of(st.none(), st.floats(0.1, 5)),
)
def test_the_speed_for_a_travel_is_the_one_that_travels_so_far(
    travel_m: float, late_s: float, delay_s: float, accel_m_s2: float | None
) -> None:
    model = MotorModel(dead_time_s=delay_s / 2, lag_s=delay_s / 2, accel_m_s2=accel_m_s2)
    assert model.travel_m(model.speed_for_travel_m_s(travel_m, late_s), late_s) == pytest.approx(travel_m)


def test_a_kobuki_drives_at_its_cruise_speed_and_five_millimeters_make_it_slow() -> None:
    assert MotionProfile().forward_m_s(INFO, KOBUKI_MOTORS) == 0.3
    assert MotionProfile(contact_travel_m=0.005).forward_m_s(INFO, KOBUKI_MOTORS) == pytest.approx(0.005 / 0.32)
    assert MotionProfile(contact_travel_m=0.006).forward_m_s(INFO, IDEAL_MOTORS) == pytest.approx(0.3)
