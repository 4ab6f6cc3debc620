"""``robot-runtime calibrate odometry``: linear and angular scale of a base's odometry.

The robot drives squares of half a meter and turns on the spot, in both directions, while a referee measures its pose:
motion capture, tags, a fused localizer; the truth in simulation. Straight legs determine the linear scale, turns the
angular one. The last round is held out.

The result is the two scales that ``robot_runtime.robots.corrected_odometry`` corrects, and the wheel radius and
separation (or gyro scale) that correspond to them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibration.motion.trajectories import MeasuredDrive, Move
from calibration.operator_guide import Guide
from calibration.procedure import Fit, Procedure
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common import config
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Robot
from robot_runtime.robots.corrected_odometry import KIND, Heading, OdometryCalibration

STEP_M = 0.25
SIDE_STEPS = 2
TURN_RAD = math.radians(30)
CORNER_TURNS = 3
FULL_TURN = 12
ROOM_M = 0.9

LIMIT_PCT = 1.5
"""Greatest error over the held-out round, above the noise over 4 m and four full turns."""


@dataclass(frozen=True, slots=True)
class Leg:
    """Consecutive motions of the same kind, measured together.

    Attributes:
        round: index of the round of the drive, from 0.
        turns: whether they are turns (rad) or forward motions (m).
        reported: displacement reported by odometry.
        true: displacement measured by the referee.
    """

    round: int
    turns: bool
    reported: float
    true: float


class OdometryProcedure(Procedure[Leg, OdometryCalibration]):
    """Calibration of odometry; see the module."""

    kind: ClassVar[str] = KIND
    limits: Mapping[str, float] = {"linear_error_pct": LIMIT_PCT, "angular_error_pct": LIMIT_PCT}

    def __init__(self, heading: Heading, radius_m: float, separation_m: float, rounds: int) -> None:
        self._heading: Heading = heading
        self._radius_m, self._separation_m = radius_m, separation_m
        self._rounds = rounds
        self._referee = ""

    def record(self, robot: Robot, guide: Guide) -> Sequence[Leg]:
        self._referee = robot.referee.info.name
        driver = MeasuredDrive(robot, guide, ROOM_M)
        legs: list[Leg] = []
        for number in range(self._rounds):
            for side in (1.0, -1.0):
                turn = Displacement(turn_rad=side * TURN_RAD)
                for _ in range(4):
                    edge = driver.move(*[Displacement(forward_m=STEP_M)] * SIDE_STEPS)
                    legs.append(Leg(number, False, edge.odom.x_m, edge.truth.x_m))
                    legs.append(_turn(driver.move(*[turn] * CORNER_TURNS), number))
                legs.append(_turn(driver.move(*[turn] * FULL_TURN), number))
                driver.return_home()
            guide.progress(number + 1, self._rounds, f"squares and turns, {len(legs)} legs")
        return legs

    def split(self, captures: Sequence[Leg]) -> tuple[list[Leg], list[Leg]]:
        last = max(leg.round for leg in captures)
        return [leg for leg in captures if leg.round < last], [leg for leg in captures if leg.round == last]

    def solve(self, captures: Sequence[Leg]) -> Fit[OdometryCalibration]:
        residuals: dict[str, float] = {}
        scales = {}
        for turns, name, unit in ((False, "linear", 1e3), (True, "angular", math.degrees(1))):
            legs = [leg for leg in captures if leg.turns is turns]
            if len(legs) < 4:
                what = "turns" if turns else "straight legs"
                raise CalibrationFailed(f"odometry: only {len(legs)} {what} were driven", "drive two rounds or more")
            reported, true = np.array([leg.reported for leg in legs]), np.array([leg.true for leg in legs])
            scale = float(reported @ true / (true @ true))
            off = reported - scale * true
            residuals[f"{name}_rms_{'deg' if turns else 'mm'}"] = float(np.sqrt(np.mean(off**2))) * unit
            deviation = math.sqrt(float(off @ off) / (len(legs) - 1) / float(true @ true))
            residuals[f"{name}_std_pct"] = 100 * deviation
            scales[name] = scale
        calibration = OdometryCalibration.from_scales(
            scales["linear"], scales["angular"], self._heading, self._radius_m, self._separation_m
        )
        rounds = len({leg.round for leg in captures})
        method = f"squares and turns both ways round, {rounds} rounds, referee {self._referee}"
        return Fit(calibration, config.unparse(calibration), "", method, residuals)

    def verify(self, solution: OdometryCalibration, held_out: Sequence[Leg]) -> Mapping[str, float]:
        def error_pct(turns: bool, scale: float) -> float:
            legs = [leg for leg in held_out if leg.turns is turns]
            # Sums over both directions, so that the scale's error remains.
            reported = sum(math.copysign(leg.reported, leg.reported * leg.true) for leg in legs)
            return 100 * abs(reported / scale / sum(abs(leg.true) for leg in legs) - 1)

        return {
            "linear_error_pct": error_pct(False, solution.linear_scale),
            "angular_error_pct": error_pct(True, solution.angular_scale),
        }


def _turn(move: Move, number: int) -> Leg:
    return Leg(number, True, move.turned_rad, move.truly_turned_rad)
