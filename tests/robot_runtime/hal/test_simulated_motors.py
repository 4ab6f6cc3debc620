"""Motors of simulated bases: each parameter alone, late reports, and options out of range."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest

from drivers.fake.driver import make_robot
from robot_runtime.common import config
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Robot, Velocity
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors
from robot_runtime.hal.wheel_motor import STICKING_M_S, WheelMotor
from robot_runtime.robots.loader import RobotContext

STEP_S = 0.01


def speeds(options: MotorOptions, commands: Sequence[Velocity], battery_fraction: float = 1.0) -> list[Velocity]:
    """Distances that the wheels drive in consecutive steps of ``STEP_S``."""
    motors = SimulatedMotors(options)
    return [
        Velocity(
            *motors.drive(
                command.linear_m_s, command.angular_rad_s, seconds_to_ns(i * STEP_S), STEP_S, battery_fraction
            )
        )
        for i, command in enumerate(commands)
    ]


def forward(m_s: float, steps: int) -> list[Velocity]:
    return [Velocity(m_s, 0.0)] * steps


def test_without_options_the_wheels_drive_what_they_are_told():
    commands = [Velocity(0.1, 0.7), Velocity(-0.3, 0.0), Velocity(0.0, -1.5)]
    assert speeds(MotorOptions(), commands) == commands


def test_a_command_takes_effect_after_the_dead_time_to_the_nanosecond():
    driven = speeds(MotorOptions(dead_time_s=0.025), forward(0.2, 6))
    assert [v.linear_m_s for v in driven[:2]] == [0.0, 0.0]
    assert driven[2].linear_m_s == pytest.approx(0.1)  # half of that step
    assert driven[3].linear_m_s == pytest.approx(0.2)


def test_the_lag_is_a_first_order_one_and_loses_no_distance_but_to_friction_at_the_end():
    driven = speeds(MotorOptions(lag_s=0.1), forward(0.3, 200) + forward(0.0, 200))
    covered_m = sum(v.linear_m_s for v in driven[:10]) * STEP_S
    assert covered_m == pytest.approx(0.3 * (0.1 - 0.1 * (1 - math.exp(-1))))
    assert sum(v.linear_m_s for v in driven) * STEP_S == pytest.approx(0.3 * 2.0, abs=0.1 * STICKING_M_S)
    assert driven[-1] == Velocity()


def test_a_wheel_at_rest_starts_only_at_its_threshold_and_then_follows():
    options = MotorOptions(threshold_m_s=(0.05, 0.05), lag_s=0.02)
    assert {v.linear_m_s for v in speeds(options, forward(0.049, 20))} == {0.0}
    assert speeds(options, forward(0.051, 20))[-1].linear_m_s == pytest.approx(0.051, abs=1e-4)
    moving = speeds(options, forward(0.2, 50) + forward(0.03, 50))
    assert moving[-1].linear_m_s == pytest.approx(0.03, abs=1e-4)


def test_one_wheel_below_its_threshold_turns_the_robot():
    driven = speeds(MotorOptions(threshold_m_s=(0.1, 0.0)), forward(0.05, 3))
    assert driven[-1].linear_m_s == pytest.approx(0.025)
    assert driven[-1].angular_rad_s == pytest.approx(0.05 / 0.23)


def test_speeds_are_multiples_of_the_quantum():
    driven = speeds(MotorOptions(speed_quantum_m_s=0.0285), forward(0.05, 3))
    assert driven[-1].linear_m_s == pytest.approx(2 * 0.0285)
    assert speeds(MotorOptions(speed_quantum_m_s=0.0285), forward(0.014, 3))[-1].linear_m_s == 0.0


def test_the_firmware_limits_acceleration_both_ways():
    driven = speeds(MotorOptions(accel_m_s2=0.5), forward(0.3, 80) + forward(0.0, 80))
    changes = [b.linear_m_s - a.linear_m_s for a, b in itertools.pairwise(driven)]
    assert max(changes) == pytest.approx(0.005)
    assert min(changes) == pytest.approx(-0.005)


@pytest.mark.parametrize("lag_s", [0.0, 0.1])
def test_a_limited_wheel_drives_the_same_in_one_step_as_in_many(lag_s: float):
    once, often = (WheelMotor(lag_s, 1.02, 0.0, accel_m_s2=0.8) for _ in range(2))
    for command_m_s in (0.3, -0.2, 0.1):
        once.step(command_m_s, 0.5)
        for _ in range(7):
            often.step(command_m_s, 0.5 / 7)
        assert once.position_m == pytest.approx(often.position_m, abs=1e-9)
        assert once.speed_m_s == pytest.approx(often.speed_m_s, abs=1e-9)


def test_gains_make_a_straight_command_an_arc_and_fall_with_the_battery():
    driven = speeds(MotorOptions(gain=(0.9, 1.1), gain_loss=0.1), forward(0.2, 2))
    assert driven[-1].linear_m_s == pytest.approx(0.2)
    assert driven[-1].angular_rad_s == pytest.approx(0.04 / 0.23)
    empty = speeds(MotorOptions(gain=(0.9, 1.1), gain_loss=0.1), forward(0.2, 2), battery_fraction=0.0)
    assert empty[-1].linear_m_s == pytest.approx(0.18)


def test_a_kobuki_is_slow_to_answer():
    driven = speeds(MotorOptions(type="kobuki"), forward(0.3, 40))
    assert {v.linear_m_s for v in driven[:20]} == {0.0}
    assert driven[-1].linear_m_s == pytest.approx(0.3 * (1 - math.exp(-2)), rel=0.06)


def fake(**motors: Any) -> Robot:
    return make_robot(RobotContext(None, None, 0), "fake", {"motors": motors}, "test")


def test_reports_come_late_and_keep_the_time_of_their_measurement():
    with fake(report_delay_s=0.05) as robot:
        robot.clock.sleep(0.2)
        for _ in range(10):
            robot.base.command(Velocity(0.2, 0.0))
            robot.clock.sleep(0.01)
        state = robot.base.state(0.1)
        assert robot.clock.now_ns() - state.stamp_ns == seconds_to_ns(0.05)
        assert 0 < state.odom.x_m < robot.referee.latest(1.0).pose.x_m


def test_the_way_after_a_stop_is_the_speed_times_dead_time_and_lag():
    with fake(type="kobuki") as robot:
        for _ in range(150):
            robot.base.command(Velocity(0.3, 0.0))
            robot.clock.sleep(0.01)
        before = robot.base.state(0.1).odom
        robot.base.stop()
        robot.clock.sleep(2.0)
        after = robot.base.state(0.1).odom
    assert before.distance_to(after) == pytest.approx(0.3 * (0.2 + 0.1), abs=0.004)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"dead_time_s": -0.1}, "dead_time_s"),
        ({"dead_time_s": 2.0}, "dead_time_s"),
        ({"lag_s": 0.9}, "lag_s"),
        ({"gain": [0.0, 1.0]}, "gain"),
        ({"threshold_m_s": [0.1, 0.9]}, "threshold_m_s"),
        ({"type": "segway"}, "type"),
        ({"report_delay_s": 1.0}, "report_delay_s"),
        ({"dead_time": 0.1}, "dead_time"),
    ],
)
def test_an_option_out_of_range_is_named(options: dict[str, Any], named: str):
    with pytest.raises(ConfigError) as caught:
        config.parse(options, MotorOptions, "robot.yaml: motors")
    assert named in caught.value.message
