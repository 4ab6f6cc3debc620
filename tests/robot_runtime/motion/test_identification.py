from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from motor_identification import identify_motors
from open_room import fake_robot, make_task
from raising import raises_naming

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import CalibrationFailed, DeviceFault
from robot_runtime.hal import Velocity
from robot_runtime.hal.motors import KOBUKI_MOTORS, MotorModel
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors
from robot_runtime.hal.wheel_motor import WheelMotor
from robot_runtime.motion.identification import PARAMETERS, MotorFit, fit_motors
from robot_runtime.motion.identification_drive import IdentificationDrive
from robot_runtime.motion.wheel_record import WheelRecord, WheelRecorder
from robot_runtime.motion.wheel_simulation import wheel_positions

TICK_S = 0.02
HIDDEN = MotorOptions(dead_time_s=0.13, lag_s=0.15, gain=(0.97, 1.02), threshold_m_s=(0.03, 0.07))


class Drive:
    """Motors under commands at 50 Hz, and odometry of where they take the robot."""

    def __init__(self, options: MotorOptions, steps: int = 1) -> None:
        self.recorder, self._steps = WheelRecorder(options.true.separation_m), steps
        self._motors, self._odom, self._now_ns = SimulatedMotors(options), SE2(), 0

    def tick(self, linear_m_s: float, angular_rad_s: float) -> None:
        self.recorder.command(Velocity(linear_m_s, angular_rad_s), self._now_ns)
        step_s = TICK_S / self._steps
        for _ in range(self._steps):
            driven_m_s, driven_rad_s = self._motors.drive(linear_m_s, angular_rad_s, self._now_ns, step_s)
            self._odom = self._odom @ SE2.arc(driven_m_s * step_s, driven_rad_s * step_s)
            self._now_ns += seconds_to_ns(step_s)
        self.recorder.report(self._odom, self._now_ns)

    def move(self, linear_m_s: float, angular_rad_s: float, seconds: float, ramp_s: float = 0.3) -> WheelRecord:
        """From rest over a ramp to a speed, and back to rest."""
        self.recorder.clear()
        for index in range(round(seconds / TICK_S)):
            share = min(1.0, (index + 1) * TICK_S / ramp_s)
            self.tick(share * linear_m_s, share * angular_rad_s)
        for _ in range(80):
            self.tick(0.0, 0.0)
        return self.recorder.record()


def drive(options: MotorOptions, steps: int = 1) -> list[WheelRecord]:
    robot = Drive(options, steps)
    turns = [robot.move(0.0, side * 1.4, 1.6, ramp_s=1.6) for side in (1, -1)]
    return [*turns, robot.move(0.3, 0.0, 0.8), robot.move(-0.3, 0.0, 0.8), robot.move(0.0, 2.0, 0.6)]


def assert_found(found: MotorModel, hidden: MotorModel) -> None:
    assert found.dead_time_s == pytest.approx(hidden.dead_time_s, abs=0.005)
    assert found.lag_s == pytest.approx(hidden.lag_s, abs=0.005)
    assert found.gain == pytest.approx(hidden.gain, abs=0.005)
    assert found.threshold_m_s == pytest.approx(hidden.threshold_m_s, abs=0.003)


def assert_intervals_hold(fit: MotorFit, options: MotorOptions) -> None:
    hidden = options.true
    slowness_s2_m = 0.0 if hidden.accel_m_s2 is None else 1 / hidden.accel_m_s2
    truth = (hidden.dead_time_s, hidden.lag_s, *hidden.gain, slowness_s2_m, *hidden.threshold_m_s)
    for name, value in zip(PARAMETERS, truth, strict=True):
        low, high = fit.interval(name)
        assert low - 1e-9 <= value <= high + 1e-9, name


@pytest.mark.slow
def test_hidden_motors_are_found_from_a_wrong_model() -> None:
    fit = fit_motors(drive(HIDDEN), KOBUKI_MOTORS)
    assert_found(fit.model, HIDDEN.true)
    assert fit.model.accel_m_s2 is None
    assert fit.error_m < 1e-4


@pytest.mark.parametrize("accel_m_s2", [None, 0.8])
def test_a_record_is_simulated_alike_with_and_without_numba(accel_m_s2: float | None) -> None:
    model = replace(HIDDEN.true, accel_m_s2=accel_m_s2, speed_quantum_m_s=0.02)
    for record in drive(HIDDEN):
        compiled, plain = (record.predicted_m(model, 1, often=often) for often in (True, False))
        np.testing.assert_allclose(plain, compiled, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_firmware_limit_of_acceleration_is_found() -> None:
    options = replace(HIDDEN, accel_m_s2=0.8)
    fit = fit_motors(drive(options), KOBUKI_MOTORS)
    assert fit.model.accel_m_s2 == pytest.approx(0.8, rel=0.1)
    assert fit.model.lag_s == pytest.approx(0.15, abs=0.01)


@pytest.mark.slow
def test_a_limited_base_may_reckon_in_other_steps_than_its_commands() -> None:
    options = replace(HIDDEN, accel_m_s2=0.8, threshold_m_s=(0.0, 0.0))
    fit = fit_motors(drive(options, steps=4), KOBUKI_MOTORS)
    assert fit.model.dead_time_s == pytest.approx(0.13, abs=0.002)
    assert_intervals_hold(fit, options)


def test_intervals_hold_the_true_values() -> None:
    hidden = HIDDEN.true
    fit = fit_motors(
        drive(HIDDEN), replace(hidden, lag_s=0.12, dead_time_s=0.15), [0.05, 0.05, 0.02, 0.02, 0, 0.02, 0.02]
    )
    assert_found(fit.model, hidden)
    assert_intervals_hold(fit, HIDDEN)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 6])
def test_thresholds_are_found_though_the_loss_has_several_minima(seed: int) -> None:
    """Motions end in slow approaches, whose commands lie close together, and the base reckons in steps of 5 ms."""
    random = np.random.default_rng(seed)
    threshold_m_s = tuple(random.uniform(0.01, 0.05, 2).tolist())
    late = {"dead_time_s": float(random.uniform(0.03, 0.2)), "lag_s": float(random.uniform(0.02, 0.12))}
    options = MotorOptions(gain=(1.033, 0.961), threshold_m_s=threshold_m_s, **late)  # type: ignore[arg-type]
    robot, records = Drive(options, steps=4), []
    for number in range(8):
        linear_m_s = random.uniform(0.2, 0.3) if number % 2 else 0.0
        angular_rad_s = 0.0 if number % 2 else random.choice((-1, 1)) * random.uniform(1, 2)
        robot.recorder.clear()
        shares = [min(1.0, (tick + 1) / random.integers(12, 16)) for tick in range(int(random.integers(20, 30)))]
        slowing = random.uniform(0.75, 0.92)
        while shares[-1] > 0.02:
            shares.append(shares[-1] * slowing)
        for share in [*shares, *[0.0] * 60]:
            robot.tick(share * linear_m_s, share * angular_rad_s)
        records.append(robot.recorder.record())
    assert_intervals_hold(fit_motors(records, MotorModel()), options)


def test_errors_that_go_together_widen_the_intervals() -> None:
    records, random = drive(HIDDEN), np.random.default_rng(1)
    walks = [np.cumsum(random.normal(0, 0.0003, one.driven_m.shape), axis=0) for one in records]
    shuffled = [random.permutation(walk) for walk in walks]
    together, apart = (
        fit_motors(
            [replace(one, driven_m=one.driven_m + noise) for one, noise in zip(records, noises, strict=True)],
            HIDDEN.true,
            [0.05, 0.05, 0.02, 0.02, 0, 0.02, 0.02],
        )
        for noises in (walks, shuffled)
    )
    assert together.sigma[1] > 2 * apart.sigma[1]


def test_a_prior_holds_what_the_records_do_not_tell() -> None:
    still = WheelRecord(
        np.arange(50, dtype=np.int64) * 20_000_000, np.zeros((50, 2)), np.arange(50, dtype=np.int64), np.zeros((50, 2))
    )
    prior = [0.05, 0.05, 0.02, 0.02, 0.1, 0.02, 0.02]
    start = replace(KOBUKI_MOTORS, accel_m_s2=1.0, threshold_m_s=(0.02, 0.03))
    found = fit_motors([still], start, prior).model
    assert (found.dead_time_s, found.lag_s, *found.gain) == pytest.approx((0.2, 0.1, 1.0, 1.0))
    assert found.accel_m_s2 == pytest.approx(1.0)


def test_a_wheel_that_slips_once_does_not_spoil_the_fit() -> None:
    records = drive(HIDDEN)
    slipped = records[2].driven_m.copy()
    slipped[60:, 0] += 0.05
    records[2] = replace(records[2], driven_m=slipped)
    fit = fit_motors(records, HIDDEN.true, [0.05, 0.05, 0.02, 0.02, 0, 0.02, 0.02])
    assert fit.model.gain == pytest.approx(HIDDEN.true.gain, abs=0.01)
    assert fit.model.lag_s == pytest.approx(HIDDEN.true.lag_s, abs=0.01)


@given(
    commands=st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=60),
    lag_s=st.sampled_from((0.0, 0.02, 0.2)),
    threshold_m_s=st.sampled_from((0.0, 0.1)),
    quantum_m_s=st.sampled_from((0.0, 0.0285)),
    accel_m_s2=st.sampled_from((math.inf, 0.8)),
)
def test_compiled_wheels_are_those_of_the_model(
    commands: list[float], lag_s: float, threshold_m_s: float, quantum_m_s: float, accel_m_s2: float
) -> None:
    wheel = WheelMotor(lag_s, 0.97, threshold_m_s, quantum_m_s, accel_m_s2)
    positions_m = [0.0]
    for command_m_s in commands:
        wheel.step(command_m_s, TICK_S)
        positions_m.append(wheel.position_m)
    steps_s = np.full(len(commands), TICK_S)
    found_m = wheel_positions(np.array(commands), steps_s, lag_s, 0.97, threshold_m_s, quantum_m_s, accel_m_s2)
    assert found_m.tolist() == pytest.approx(positions_m, abs=1e-12)


def test_the_recorder_separates_wheels_across_a_half_turn() -> None:
    recorder = WheelRecorder(0.2)
    for index in range(5):
        recorder.command(Velocity(0.1, 2.0), index)
        recorder.report(SE2(0.0, 0.0, math.radians(50) * index), index)
    record = recorder.record()
    assert record.command_m_s[0] == pytest.approx((-0.1, 0.3))
    turned_m = math.radians(200) * 0.1
    assert record.driven_m[-1] == pytest.approx((-turned_m, turned_m))


def test_the_recorder_ignores_a_report_that_is_not_newer() -> None:
    recorder = WheelRecorder(0.2)
    recorder.command(Velocity(), 0)
    for stamp_ns in (5, 5, 3, 6):
        recorder.report(SE2(), stamp_ns)
    assert recorder.record().stamp_ns.tolist() == [5, 6]


def test_a_drive_whose_odometry_is_not_finite_commands_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_robot(make_task()) as robot:
        robot.clock.sleep(0.1)
        state, command, commands = robot.base.state, robot.base.command, list[Velocity]()

        def sent(velocity: Velocity) -> Velocity:
            commands.append(velocity)
            return command(velocity)

        monkeypatch.setattr(robot.base, "state", lambda age_s: replace(state(age_s), odom=SE2(math.nan, 0.0, 0.0)))
        monkeypatch.setattr(robot.base, "command", sent)
        drive = IdentificationDrive(robot.clock, robot.base, 0.23)
        for begin in (drive.ramps, drive.moves):
            with raises_naming(DeviceFault, "not finite"):
                begin()
    assert set(commands) == {Velocity()}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["held", "changed"])
def test_a_model_is_accepted_only_if_it_predicts_moves_that_it_was_not_fitted_to(
    monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    with fake_robot(make_task(), motors={"type": "kobuki", "gain": [0.97, 1.02]}) as robot:
        drive = IdentificationDrive(robot.clock, robot.base, 0.23)
        moves = drive.moves

        def moved(*arguments: Any) -> list[WheelRecord]:
            records = moves(*arguments)
            if arguments and family == "changed":  # the verifying moves: 13 % shorter
                return [replace(record, driven_m=0.87 * record.driven_m) for record in records]
            return records

        monkeypatch.setattr(drive, "moves", moved)
        if family == "held":
            fit = identify_motors(drive, KOBUKI_MOTORS)
            assert fit.model.gain == pytest.approx((0.97, 1.02), abs=0.005)
        else:
            with raises_naming(CalibrationFailed, "rms_mm", 5):
                identify_motors(drive, KOBUKI_MOTORS)
