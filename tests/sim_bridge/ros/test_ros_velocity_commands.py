"""Velocity commands in a base: timeouts, ramps, and Kobuki's rounding to millimeters and radii. Needs no ROS."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Velocity
from robot_runtime.safety.guard import STILL
from sim_bridge.ros.faults import FAULTS, Faults
from sim_bridge.ros.robot_variants import VARIANTS, DriverTiming, robot_variant
from sim_bridge.ros.timing import PeriodicTimer
from sim_bridge.ros.velocity_commands import VelocityCommandModel, speed_and_radius, through_radius

PLAIN = DriverTiming(report_hz=50.0, command_hz=50.0, command_timeout_s=0.6)


def outputs(
    control: VelocityCommandModel, from_s: float, to_s: float, period_s: float = 0.02
) -> list[tuple[float, Velocity]]:
    """(time, velocity) of every tick in a span."""
    count = round((to_s - from_s) / period_s)
    times = [from_s + i * period_s for i in range(count + 1)]
    return [(t, control.tick(seconds_to_ns(t))) for t in times]


@pytest.mark.parametrize(("name", "timeout_s"), [("pyrobot-kobuki", 0.6), ("pyrobot-create", 0.2), ("interbotix", 2.0)])
def test_wheels_stop_by_themselves_at_the_familys_timeout(name: str, timeout_s: float) -> None:
    control = VelocityCommandModel(robot_variant(name).timing, 0.7, math.pi)
    control.command(0.2, 0.0, 0)
    moving = [t for t, velocity in outputs(control, 0.0, 4.0) if velocity != STILL]
    # Looked at ten times a second; a limiter then takes a third of a second more.
    ramp_s = 0.4 if robot_variant(name).timing.acceleration_limiter else 0.0
    assert timeout_s - 0.02 <= max(moving) <= timeout_s + 0.1 + 0.02 + ramp_s


def test_repeated_commands_keep_it_moving_and_zero_stops_it_at_once() -> None:
    control = VelocityCommandModel(PLAIN, 0.7, math.pi)
    for i in range(100):
        control.command(0.2, 0.1, seconds_to_ns(i * 0.1))
        assert control.tick(seconds_to_ns(i * 0.1)) == Velocity(0.2, 0.1)
    control.command(0.0, 0.0, seconds_to_ns(10.0))
    assert control.tick(seconds_to_ns(10.0)) == STILL


def test_a_limiter_ramps_a_stop() -> None:
    control = VelocityCommandModel(robot_variant("interbotix").timing, 0.7, math.pi)
    control.command(0.2, 0.0, 0)
    assert outputs(control, 0.0, 1.0)[-1][1].linear_m_s == pytest.approx(0.2, abs=1e-3)
    control.command(0.0, 0.0, seconds_to_ns(1.0))
    coasted_m = sum(velocity.linear_m_s * 0.02 for _, velocity in outputs(control, 1.02, 2.0))
    assert coasted_m == pytest.approx(0.031, abs=0.005), "as measured on kobuki_core's own limiter"


def test_commands_are_late_by_their_latency_and_lost_without_power() -> None:
    late = DriverTiming(report_hz=50.0, command_hz=50.0, command_timeout_s=0.6, command_latency_s=0.05)
    control = VelocityCommandModel(late, 0.7, math.pi)
    control.command(0.2, 0.0, 0)
    assert min(t for t, velocity in outputs(control, 0.0, 0.2) if velocity != STILL) == pytest.approx(0.06)
    control.power(False)
    control.command(0.2, 0.0, seconds_to_ns(0.3))
    assert {velocity for _, velocity in outputs(control, 0.3, 0.5)} == {STILL}
    control.power(True)
    control.command(0.2, 0.0, seconds_to_ns(0.6))
    assert outputs(control, 0.6, 0.8)[-1][1] == Velocity(0.2, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_stands_still(bad: float) -> None:
    control = VelocityCommandModel(PLAIN, 0.7, math.pi)
    control.command(0.2, 0.0, 0)
    control.command(bad, 0.0, 1)
    control.command(0.2, bad, 1)
    assert control.tick(2) == STILL


@given(st.floats(-5, 5), st.floats(-20, 20))
def test_no_command_exceeds_what_the_wheels_can(linear_m_s: float, angular_rad_s: float) -> None:
    control = VelocityCommandModel(PLAIN, 0.7, math.pi)
    control.command(linear_m_s, angular_rad_s, 0)
    velocity = control.tick(0)
    assert abs(velocity.linear_m_s) <= 0.7
    assert abs(velocity.angular_rad_s) <= math.pi


# Frames that Kobuki's own driver library emitted for these velocities.
@pytest.mark.parametrize(
    ("velocity", "command"),
    [
        (Velocity(0.2, 0.0), (200, 0)),
        (Velocity(0.0, 0.5), (57, 1)),
        (Velocity(0.2, 1.0), (315, 200)),
        (Velocity(-0.2, 1.0), (-315, -200)),
        (Velocity(0.5, 0.01), (501, 32767)),
        (STILL, (0, 0)),
    ],
)
def test_kobukis_command(velocity: Velocity, command: tuple[int, int]) -> None:
    assert speed_and_radius(velocity) == command


@given(st.floats(-0.7, 0.7), st.floats(-math.pi, math.pi))
def test_a_velocity_survives_kobukis_command_but_for_rounding(linear_m_s: float, angular_rad_s: float) -> None:
    out = through_radius(Velocity(linear_m_s, angular_rad_s))
    # A radius cannot be larger than 32.8 m, so the smallest turn on the way is v / 32.8. Speed and radius lose up to a
    # millimetre each, and a radius of 1 mm means none: seen from wheels 115 mm from the centre.
    rounded_rad_s = (1 + 2 * abs(angular_rad_s)) / 115
    assert out.angular_rad_s == pytest.approx(angular_rad_s, abs=abs(linear_m_s) / 32 + rounded_rad_s)
    assert out.linear_m_s == pytest.approx(linear_m_s, abs=0.01)


@given(st.floats(1, 200), st.sampled_from([1_000_000, 2_000_000, 5_000_000]))
def test_ticks_keep_their_rate_on_the_grid_of_steps(rate_hz: float, step_ns: int) -> None:
    ticks = PeriodicTimer(rate_hz, step_ns)
    steps = 10_000_000_000 // step_ns
    count = sum(ticks.due(i * step_ns) for i in range(0, steps))
    possible = min(rate_hz * 10, steps)
    assert count == pytest.approx(possible, abs=2)


def test_families_and_names_that_do_not_exist() -> None:
    with raises_naming(ConfigError, "turtlebot", "pyrobot-kobuki"):
        robot_variant("turtlebot")
    with raises_naming(ConfigError, "loco bot"):
        robot_variant("interbotix", "loco bot")
    assert robot_variant("interbotix", "rob").names.frames.base == "rob/base_footprint"
    assert {robot_variant(name).names.frames.base for name in VARIANTS} == {"base_footprint", "locobot/base_footprint"}


class TestFaults:
    def test_come_and_go(self) -> None:
        faults = Faults()
        faults.set("camera_silent", 1)
        faults.set("bumper", 5)
        assert "camera_silent" in faults
        assert faults.bits("bumper") == 5
        faults.set("camera_silent", 0)
        assert "camera_silent" not in faults
        faults.set("", 0)
        assert not any(name in faults for name in FAULTS)

    @pytest.mark.parametrize(
        ("name", "value", "hint"),
        [
            ("camera_silnt", 1, "camera_silent"),
            ("bumper", 8, "0 to 7"),
            ("battery", 2, "fraction"),
            ("cliff", math.nan, "number"),
        ],
    )
    def test_refuse_what_cannot_be(self, name: str, value: float, hint: str) -> None:
        with pytest.raises(ConfigError) as caught:
            Faults().set(name, value)
        assert hint in caught.value.remedy

    def test_are_all_in_the_docs(self) -> None:
        page = Path(__file__).resolve().parents[3] / "docs" / "robots" / "locobot-ros.md"
        rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert {name: rows.get(name) for name in FAULTS} == FAULTS
