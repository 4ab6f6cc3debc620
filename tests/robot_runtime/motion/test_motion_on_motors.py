"""Actions on bases with motors: dead time, lag, thresholds, gains, quantum, acceleration limit and late reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from raising import raises_naming

from drivers.fake.driver import make_robot
from robot_runtime.actions import timed
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import BaseState, Robot, Velocity
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.hal.motors import CREATE_2_MOTORS, KOBUKI_MOTORS, KnownMotors, MotorModel
from robot_runtime.hal.simulated_motors import MotorOptions
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.prediction import Lateness, MotionPredictor, WheelCheck
from robot_runtime.motion.steering import Steering
from robot_runtime.records import Outcome
from robot_runtime.robots.loader import RobotContext
from robot_runtime.tasks.task import load_task

FORWARD = Displacement(forward_m=0.25)
LEFT = Displacement(turn_rad=math.radians(30))
RIGHT = Displacement(turn_rad=-math.radians(30))

BASES: dict[str, dict[str, Any]] = {
    "kobuki": {"type": "kobuki"},
    "create": {"type": "create2", "report_delay_s": 0.05},
    "slow": {"dead_time_s": 0.25, "lag_s": 0.25, "gain": [0.95, 1.05], "report_delay_s": 0.1},
    "quick": {"dead_time_s": 0.02, "lag_s": 0.02, "gain": [1.05, 0.97], "report_delay_s": 0.02},
    "sticky": {"dead_time_s": 0.17, "lag_s": 0.05, "threshold_m_s": [0.12, 0.09], "report_delay_s": 0.03},
    "uneven": {"dead_time_s": 0.1, "lag_s": 0.15, "threshold_m_s": [0.0, 0.11], "report_delay_s": 0.06},
    "coarse": {"dead_time_s": 0.1, "lag_s": 0.15, "threshold_m_s": [0.06, 0.05], "speed_quantum_m_s": 0.0285},
    "ramped": {"dead_time_s": 0.15, "lag_s": 0.1, "threshold_m_s": [0.04, 0.05], "accel_m_s2": 0.6},
}
"""Within the ranges that docs/how-to/motion.md names."""


@contextmanager
def base_with(motors: dict[str, Any], calibrated: bool = False, **options: Any) -> Iterator[Robot]:
    options = {"rate_hz": 50.0, "max_linear_accel_m_s2": 1.0, "max_angular_accel_rad_s2": 7.0, **options}
    context = RobotContext(scene=None, camera=None, seed=0)
    with make_robot(context, "fake", {"motors": motors, **options}, "test") as robot:
        true = MotorOptions(**{**motors, **{k: tuple(v) for k, v in motors.items() if isinstance(v, list)}}).true
        robot.base.motors = KnownMotors(true, calibrated=True) if calibrated else KnownMotors(KOBUKI_MOTORS)
        yield robot


def controller(robot: Robot) -> MotionController:
    return MotionController(robot.clock, robot.base, robot.head)


def odom(robot: Robot) -> SE2:
    return robot.base.state(1.0).odom


def at_rest(robot: Robot) -> SE2:
    """Odometry after everything that was under way."""
    robot.clock.sleep(1.5)
    return odom(robot)


@pytest.mark.parametrize("calibrated", [True, False], ids=["calibrated", "assumed"])
@pytest.mark.parametrize("base", BASES)
def test_actions_end_at_rest_within_tolerance_whatever_the_motors(base: str, calibrated: bool) -> None:
    with base_with(BASES[base], calibrated) as robot:
        motion = controller(robot)
        tolerance = motion.profile
        for wish in (FORWARD, LEFT, RIGHT, RIGHT, FORWARD):
            before = odom(robot)
            aimed_rad = motion.intended_yaw_rad if motion.intended_yaw_rad is not None else before.yaw_rad
            result = motion.execute(wish)
            end = at_rest(robot)
            assert (result.outcome, result.detail) == (Outcome.REACHED, "")
            moved = end.relative_to(before)
            assert result.measured.forward_m == pytest.approx(moved.x_m, abs=2e-3)
            if wish.forward_m:
                assert moved.x_m == pytest.approx(wish.forward_m, abs=tolerance.position_m + 5e-4)
            off_rad = abs(wrap_angle(end.yaw_rad - aimed_rad - wish.turn_rad))
            assert off_rad <= tolerance.heading_rad + math.radians(0.05)
            assert moved.y_m == pytest.approx(0.0, abs=0.005 if calibrated else 0.02)


@pytest.mark.parametrize("base", ["kobuki", "create", "slow", "coarse", "ramped"])
def test_a_calibrated_base_takes_hardly_longer_than_its_delays_and_the_limits_demand(base: str) -> None:
    with base_with(BASES[base], calibrated=True) as robot:
        model, motion = robot.base.motors.model, controller(robot)
        late_s = model.dead_time_s + BASES[base].get("report_delay_s", 0.0)
        ideal_s = 0.25 / 0.3 + 0.3 / (0.95 * min(1.0, model.accel_m_s2 or 1.0))
        assert max(motion.execute(FORWARD).duration_s for _ in range(3)) <= 1.3 * (late_s + ideal_s)
        if model.accel_m_s2 is None:  # with a limit, the lag is not inverted
            ideal_s = motion.leg(LEFT.forward_m, LEFT.turn_rad).duration_s
            assert max(motion.execute(LEFT).duration_s for _ in range(3)) <= 1.3 * (late_s + ideal_s)


@pytest.mark.parametrize("wish", [FORWARD, LEFT], ids=["forward", "turn"])
def test_a_limit_of_acceleration_that_no_command_reaches_costs_no_time(wish: Displacement) -> None:
    """An identification from noisy odometry finds such limits at bases without any."""
    durations_s = []
    for limit in ({}, {"accel_m_s2": 10.5}):
        with base_with({"dead_time_s": 0.2, "lag_s": 0.1, "report_delay_s": 0.02, **limit}, calibrated=True) as robot:
            durations_s.append(controller(robot).execute(wish).duration_s)
    assert durations_s[1] == pytest.approx(durations_s[0], abs=0.021), "more than a tick apart"


@pytest.mark.parametrize("wish", [FORWARD, LEFT], ids=["forward", "turn"])
@pytest.mark.parametrize("late_s", [-0.015, 0.015], ids=["early", "late"])
def test_a_motion_that_follows_earlier_or_later_than_calibrated_still_ends_in_one_leg(
    late_s: float, wish: Displacement
) -> None:
    durations_s, moved = [], SE2()
    for true_s in (0.2, 0.2 + late_s):
        with base_with({"dead_time_s": true_s, "lag_s": 0.1, "report_delay_s": 0.02}) as robot:
            robot.base.motors = KnownMotors(KOBUKI_MOTORS, calibrated=True)
            durations_s.append(controller(robot).execute(wish).duration_s)
            moved = at_rest(robot)
    assert durations_s[1] <= durations_s[0] + 0.05
    assert moved.x_m == pytest.approx(wish.forward_m, abs=0.002)
    assert moved.yaw_rad == pytest.approx(wish.turn_rad, abs=math.radians(0.4))


def test_what_friction_took_of_short_legs_is_no_wheel_that_turns_the_wrong_way() -> None:
    predictor = MotionPredictor(MotorModel(), 0)
    check, now_ns = WheelCheck(predictor), 0

    def leg(commanded_m_s: float, driven_m: float) -> None:
        nonlocal now_ns
        predictor.send(Velocity(commanded_m_s), now_ns)
        now_ns += 100_000_000
        predictor.send(Velocity(), now_ns)
        left_m, right_m = predictor.driven
        predictor.recorder.driven_m = (left_m + driven_m, right_m + driven_m)

    leg(0.6, 0.06)
    for _ in range(6):  # each is to take back 2 cm, and none does
        check.rebase()
        leg(-0.2, 0.0)
        check.check()
    check = WheelCheck(predictor)
    for _ in range(2):  # the polarity is wrong
        check.rebase()
        leg(-0.3, 0.03)
    with raises_naming(DeviceFault, "turns the wrong way"):
        check.check()


def test_what_a_wheel_loses_at_its_start_is_not_taken_for_lateness() -> None:
    lost, late = Lateness(), Lateness()
    for speed_m_s in [0.01 * tick for tick in range(20)]:
        lost.add(-0.004, speed_m_s)
        late.add(-0.01 * speed_m_s, speed_m_s)
        late.add(0.01 * speed_m_s, -speed_m_s)
    assert abs(lost.seconds) < 0.006 < late.seconds < 0.011


@pytest.mark.parametrize("base", ["slow", "quick", "sticky", "ramped"])
def test_without_a_calibration_the_direction_changes_only_at_rest(base: str) -> None:
    with base_with(BASES[base]) as robot:
        sent: list[float] = []
        command = robot.base.command

        def noted(velocity: Velocity) -> Velocity:
            sent.append(velocity.linear_m_s)
            return command(velocity)

        robot.base.command = noted  # type: ignore[method-assign]
        assert controller(robot).execute(FORWARD).outcome is Outcome.REACHED
    assert sent[0] > 0
    pause, last = 0, 1.0
    for linear_m_s in sent:
        if linear_m_s * last < 0:
            assert pause >= 10, "ticks at zero before the direction changed"
        pause, last = (0, linear_m_s) if linear_m_s else (pause + 1, last)


@pytest.mark.parametrize("wish", [FORWARD, LEFT], ids=["forward", "turn"])
def test_a_coarse_base_starts_though_a_tick_grants_less_than_half_of_its_quantum(wish: Displacement) -> None:
    with base_with(BASES["create"], max_linear_accel_m_s2=0.3, max_angular_accel_rad_s2=2.5) as robot:
        robot.base.motors = KnownMotors(CREATE_2_MOTORS)
        assert controller(robot).execute(wish).outcome is Outcome.REACHED


def test_what_was_learned_of_static_friction_helps_the_next_action() -> None:
    with base_with(BASES["sticky"]) as robot:
        motion = controller(robot)
        durations_s = [motion.execute(Displacement(turn_rad=math.radians(2))).duration_s for _ in range(4)]
        learned_m_s = motion.follower.predictor.model.threshold_m_s
    assert min(learned_m_s) > 0.05
    assert max(durations_s[2:]) < durations_s[0]


def test_a_bumper_that_is_pressed_forbids_no_turn_on_motors() -> None:
    with base_with(BASES["uneven"], faults=[{"kind": "stuck_bumper"}]) as robot:
        motion = controller(robot)
        assert motion.execute(FORWARD).outcome is Outcome.CONTACT
        assert [motion.execute(LEFT).outcome for _ in range(3)] == [Outcome.REACHED] * 3


@pytest.mark.parametrize("calibrated", [True, False])
def test_continuous_actions_on_motors(calibrated: bool) -> None:
    control = load_task("objectnav_hm3d2023").control
    assert control is not None
    with base_with(BASES["kobuki"], calibrated) as robot:
        motion = controller(robot)
        steering = Steering(robot.clock, robot.base, robot.head, motion)
        turned = steering.execute(timed.velocity(0.2, 0.4, 0.0, 1.0), control)
        there = at_rest(robot)
        assert turned.outcome is Outcome.REACHED
        assert there.distance_to(SE2.arc(0.2, 0.4)) < 0.008
        assert there.yaw_rad == pytest.approx(0.4, abs=motion.profile.heading_rad)
        goal = there @ SE2(0.3, 0.2, -1.0)
        assert steering.execute(timed.waypoint(0.3, 0.2, -1.0, 0.0, 60.0), control).outcome is Outcome.REACHED
        assert at_rest(robot).distance_to(goal) < 0.015


def test_the_place_of_rest_is_predicted_from_the_commands_alone() -> None:
    model = MotorModel(0.12, 0.15, (0.97, 1.02), (0.05, 0.03), 0.0, 0.9)
    with base_with({"dead_time_s": 0.12, "lag_s": 0.15, "gain": [0.97, 1.02], "accel_m_s2": 0.9}) as robot:
        model = replace(model, threshold_m_s=(0.0, 0.0))
        predictor = MotionPredictor(model, robot.clock.now_ns())
        predicted: list[SE2] = []
        for linear_m_s, angular_rad_s in [(0.1, 0.0)] * 20 + [(0.3, 0.5)] * 30 + [(0.2, -0.5)] * 10:
            sent = robot.base.command(Velocity(linear_m_s, angular_rad_s))
            predictor.send(sent, robot.clock.now_ns())
            robot.clock.sleep(0.02)
            state = robot.base.state(1.0)
            predictor.advance(robot.clock.now_ns())
            predictor.observe(state.odom, state.stamp_ns)
        predicted.append(predictor.rest_pose(state))
        robot.base.stop()
        end = at_rest(robot)
    assert predicted[0].distance_to(end) < 0.005
    assert predicted[0].yaw_rad == pytest.approx(end.yaw_rad, abs=0.005)


# --- what is wrong with a base --------------------------------------------------------------------------------------


class Miswired:
    """The wheels' commands, altered on their way."""

    def __init__(self, robot: Robot, left: float, right: float) -> None:
        self._command, self._base, self._shares = robot.base.command, robot.base, (left, right)
        robot.base.command = self.command  # type: ignore[method-assign]

    def command(self, velocity: Velocity) -> Velocity:
        left_m_s, right_m_s = MotorModel().wheel_speeds(velocity.linear_m_s, velocity.angular_rad_s)
        left_m_s, right_m_s = left_m_s * self._shares[0], right_m_s * self._shares[1]
        self._command(Velocity((left_m_s + right_m_s) / 2, (right_m_s - left_m_s) / 0.23))
        return velocity


@pytest.mark.parametrize("wish", [FORWARD, LEFT], ids=["forward", "turn"])
@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (-1.0, -1.0, "wheel turns the wrong way"),
        (1.0, -1.0, "right wheel turns the wrong way"),
        (0.0, 1.0, "left wheel does not turn"),
        (1.0, 0.0, "right wheel does not turn"),
    ],
)
def test_a_wheel_that_does_not_do_what_it_is_told_is_a_fault_with_a_remedy(
    wish: Displacement, left: float, right: float, message: str
) -> None:
    with base_with(BASES["kobuki"]) as robot:
        Miswired(robot, left, right)
        motion = controller(robot)
        result = motion.execute(wish)
        robot.clock.sleep(1.0)
        assert odom(robot).distance_to(at_rest(robot)) < 1e-4
    assert result.outcome is Outcome.FAULT
    assert message in result.detail
    assert motion.fault is not None
    assert "check" in motion.fault.remedy
    assert result.duration_s < 1.5


def test_a_threshold_above_the_speed_limit_is_a_fault_with_a_remedy_and_nothing_moves() -> None:
    with base_with({"threshold_m_s": [0.0, 0.2]}, calibrated=True) as robot:
        motion = controller(robot)
        turned, ahead = motion.execute(LEFT), motion.execute(FORWARD)
    assert turned.outcome is Outcome.FAULT
    assert "its right wheel starts at 0.200 m/s, above the limit of 0.173 m/s" in turned.detail
    assert turned.duration_s == 0.0
    assert ahead.outcome is Outcome.REACHED


@pytest.mark.parametrize("wish", [FORWARD, LEFT])
def test_odometry_that_is_later_than_any_driver_s_is_a_fault_with_the_wheels_at_zero(wish: Displacement) -> None:
    with base_with({"type": "kobuki", "report_delay_s": 0.4}) as robot:
        robot.clock.sleep(1.0)
        motion = controller(robot)
        result = motion.execute(wish)
        assert at_rest(robot) == SE2()
    assert result.outcome is Outcome.FAULT
    assert isinstance(motion.fault, StaleData)
    assert motion.fault.remedy


# --- contact --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lag_s", [0.0, 0.1, 0.25])
@pytest.mark.parametrize("allowed_m", [0.005, 0.05])
def test_the_speed_is_bounded_so_that_a_contact_stops_the_robot_in_time(allowed_m: float, lag_s: float) -> None:
    motors = {"dead_time_s": 0.1, "lag_s": lag_s}
    with base_with(motors, calibrated=True, faults=[{"kind": "stuck_bumper", "from_s": 4.0}]) as robot:
        profile = MotionProfile(contact_travel_m=allowed_m)
        touched_m: list[float] = []

        def note(state: BaseState) -> None:
            if state.bumper and not touched_m:
                touched_m.append(state.odom.x_m)

        motion = MotionController(robot.clock, robot.base, robot.head, profile, note)
        result = motion.execute(Displacement(forward_m=3.0))
        end = at_rest(robot)
    assert result.outcome is Outcome.CONTACT
    assert touched_m[0] > 0.01
    assert end.x_m - touched_m[0] <= allowed_m
    # Nor slower than needed, unless by the profile.
    assert end.x_m - touched_m[0] >= min(0.6 * allowed_m, 0.9 * profile.linear_m_s * (0.1 + lag_s))
