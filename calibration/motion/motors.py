"""``robot-runtime calibrate motors``: dead time, lag, thresholds and gains of a base's motors.

The robot drives alone within half a meter of its start, for less than a minute: slow ramps of turning commands until
both wheels turn, then moves forward, back and on the spot, and others to verify with. Odometry (and the gyro that it
takes its heading from) is all that is measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from calibration import start_poses
from calibration.operator_guide import Guide
from calibration.procedure import Fit, Procedure
from robot_runtime.common import config
from robot_runtime.hal import MotorModel, Robot
from robot_runtime.motion import identification_drive
from robot_runtime.motion.identification import LEAST_SLOWNESS_S2_M, PARAMETERS, MotorFit
from robot_runtime.motion.wheel_record import WheelRecord
from robot_runtime.robots.calibration_file import MOTORS, MotorCalibration

RAMPS = 4
SLOWNESS = "slowness_s2_m"
"""Of the parameters, what the file states as its inverse."""


@dataclass(frozen=True, slots=True, eq=False)
class Drive:
    """One ramp or move."""

    record: WheelRecord
    held_out: bool


class MotorProcedure(Procedure[Drive, MotorFit]):
    """Calibration of motors; see the module."""

    kind: ClassVar[str] = MOTORS
    limits: Mapping[str, float] = identification_drive.HELD_OUT_LIMITS

    def __init__(self) -> None:
        self._start = MotorModel()
        self._figures: dict[str, float] = {}

    def record(self, robot: Robot, guide: Guide) -> Sequence[Drive]:
        guide.tell("the robot drives by itself: half a meter of free floor is needed around it")
        if robot.simulation is not None:
            start_poses.central_start_pose(robot, robot.simulation)
        self._start = robot.base.motors.model
        total, done = RAMPS + len(identification_drive.MOVES) + len(identification_drive.TEST_MOVES), 0

        def on_record() -> None:
            nonlocal done
            done += 1
            guide.progress(done, total, "ramps and moves")

        drive = identification_drive.IdentificationDrive(robot.clock, robot.base, self._start.separation_m, on_record)
        solved = [*drive.ramps(RAMPS), *drive.moves(identification_drive.MOVES)]
        tested = drive.moves(identification_drive.TEST_MOVES)
        self._figures = {
            "drive_s": drive.seconds,
            "extent_m": drive.extent_m,
            "report_delay_ms": 1000 * drive.report_delay_s,
        }
        return [Drive(record, False) for record in solved] + [Drive(record, True) for record in tested]

    def split(self, captures: Sequence[Drive]) -> tuple[list[Drive], list[Drive]]:
        return [c for c in captures if not c.held_out], [c for c in captures if c.held_out]

    def solve(self, captures: Sequence[Drive]) -> Fit[MotorFit]:
        fit = identification_drive.fit_drive([capture.record for capture in captures], self._start)
        calibration = calibration_of(fit)
        residuals = {"rms_mm": 1000 * fit.error_m, **self._figures}
        method = f"{len(captures)} ramps and moves, odometry alone"
        return Fit(fit, config.unparse(calibration), "", method, residuals)

    def verify(self, solution: MotorFit, held_out: Sequence[Drive]) -> Mapping[str, float]:
        return identification_drive.held_out_errors(solution.model, [capture.record for capture in held_out])


def calibration_of(fit: MotorFit) -> MotorCalibration:
    """The fit as the content of a file: to a tenth of a millisecond, of a millimeter per second and of a per mille."""
    model = fit.model
    low_m_s, high_m_s = (round(threshold_m_s, 4) for threshold_m_s in model.threshold_m_s)
    left, right = (round(gain, 4) for gain in model.gain)
    model = replace(
        model,
        dead_time_s=round(model.dead_time_s, 4),
        lag_s=round(model.lag_s, 4),
        gain=(left, right),
        threshold_m_s=(low_m_s, high_m_s),
        accel_m_s2=None if model.accel_m_s2 is None else round(model.accel_m_s2, 4),
    )
    intervals = {name: fit.interval(name) for name in PARAMETERS if name != SLOWNESS}
    if model.accel_m_s2 is not None:
        low_s2_m, high_s2_m = fit.interval(SLOWNESS)
        intervals["accel_m_s2"] = 1 / high_s2_m, 1 / max(low_s2_m, LEAST_SLOWNESS_S2_M)
    return MotorCalibration(model, {name: (round(low, 4), round(high, 4)) for name, (low, high) in intervals.items()})
