"""Motion over a network of either generation: duration of a forward and a turn, and accuracy by the ground truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import CalibrationFailed, DeviceFault
from robot_runtime.hal import Robot
from robot_runtime.hal.motors import KnownMotors
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.identification_drive import IdentificationDrive
from robot_runtime.records import Outcome
from tests.benchmarks.report import Row
from tests.support.motor_identification import identify_motors

START = SE2(0.9, 1.36, 0.0)
"""In the bundled apartment: 1.5 m of free floor ahead."""

FORWARD, TURN = Displacement(forward_m=0.25), Displacement(turn_rad=math.radians(30))
LAP = (FORWARD, FORWARD, TURN, TURN, FORWARD, TURN, FORWARD, TURN)
"""Actions from the start; then the robot is placed there again, with other errors."""

POSE_S = 0.5
"""Time limit of the wait for ground truth, which is published at 50 Hz."""


@dataclass
class Actions:
    """Durations and errors of all actions of one kind."""

    seconds: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)


def measured_rows(robot: Robot, trials: int, advance: Callable[[], None], note: str) -> list[Row]:
    """Return durations and errors over ``trials`` actions of each kind; ``advance`` is called after each of them."""
    forward, turn = Actions(), Actions()
    with robot:
        repeated = calibrate_motors(robot)
        motion = MotionController(robot.clock, robot.base, robot.head)
        while len(forward.seconds) < trials:
            robot.placer.place(START, 0.0)
            motion.forget()
            motion.rest()
            for displacement in LAP:
                _measure(robot, motion, displacement, forward if displacement is FORWARD else turn)
                advance()
    note = (
        f"{len(forward.seconds)} forwards, {len(turn.seconds)} turns, encoder and gyro noise, {note}motors calibrated"
        + ", once more after the first calibration had refused its own model" * repeated
    )
    return [
        _row("forward_s", "0.25 m, from command to rest", forward.seconds, "s", 1.9, note),
        _row("turn_s", "30 degrees, from command to rest", turn.seconds, "s", 1.2, note),
        _row("forward_error_mm", "0.25 m: error of the distance by ground truth", forward.errors, "mm", 10, note),
        _row("turn_error_deg", "30 degrees: error of the turn by ground truth", turn.errors, "deg", 1, note),
    ]


def calibrate_motors(robot: Robot) -> bool:
    """Measure the motors as ``robot-runtime calibrate motors`` does, over ROS, and let the controller use them.

    A model that errs in the moves that verify it is refused, with the remedy to repeat the calibration. That is done
    once; whether it was is returned.
    """
    start = robot.base.motors.model
    drive = IdentificationDrive(robot.clock, robot.base, start.separation_m)
    repeated = False
    robot.placer.place(START, 0.0)
    try:
        fit = identify_motors(drive, start)
    except CalibrationFailed:
        repeated = True
        robot.placer.place(START, 0.0)
        fit = identify_motors(drive, start)
    robot.base.motors = KnownMotors(fit.model, calibrated=True)
    return repeated


def _measure(robot: Robot, motion: MotionController, displacement: Displacement, into: Actions) -> None:
    before = _truth(robot)
    result = motion.execute(displacement)
    if result.outcome is not Outcome.REACHED:
        raise motion.fault or DeviceFault(f"an action ended as {result.outcome.value}", "see the output above")
    moved = _truth(robot).relative_to(before)
    into.seconds.append(result.duration_s)
    if displacement is FORWARD:
        into.errors.append(1000 * abs(moved.x_m - displacement.forward_m))
    else:
        into.errors.append(math.degrees(abs(wrap_angle(moved.yaw_rad - displacement.turn_rad))))


def _truth(robot: Robot) -> SE2:
    """Return the robot's true pose, a period or two after it has come to rest."""
    stamp_ns = robot.clock.now_ns() + seconds_to_ns(0.04)
    return robot.referee.at(stamp_ns, POSE_S).pose


def _row(name: str, what: str, values: list[float], unit: str, target: float, note: str) -> Row:
    low, middle, high = (float(value) for value in np.percentile(values, (1, 50, 99)))
    note = f"{note}; in brackets 1st and 99th percentile"
    return Row(name, f"{what}, median", middle, unit, target, "<=", low=low, high=high, note=note)
