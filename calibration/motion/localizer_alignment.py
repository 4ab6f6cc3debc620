"""``robot-runtime calibrate localization``: alignment of a localizer's frame with the scene's map.

The robot starts at a known pose of the map and drives an L: 1 m ahead, a quarter turn, 1 m ahead. Odometry gives its
poses in the map, the localizer in its own frame, and ``robot_runtime.localization.alignment`` solves for the transform.
A scale error of odometry of 1 % is 2 cm at the end of the drive and half of that after the fit: calibrate it first.

With ``--points`` the robot is placed on surveyed points instead, independent of its odometry.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibration.operator_guide import Guide
from calibration.procedure import Fit, Procedure, execute_motion
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import MapCoordinate
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Localizer, PoseEstimate, PoseHistory, PoseStatus, Robot
from robot_runtime.localization.alignment import INLIER_M, KIND, MAX_RMS_M, Alignment, AlignmentSample, solve_alignment
from robot_runtime.motion.controller import MotionController

MAX_OUTLIERS = 0.4
"""Greatest fraction of held-out measurements with errors beyond ``INLIER_M``."""
STEP_M = 0.25
STEPS = 4
TURN_RAD = math.radians(30)
TURNS = 3
WINDOW_S = 3.0
"""Duration of the measurement at a surveyed point: 24 measurements of a beacon system at 8 Hz."""


@dataclass(frozen=True)
class SurveyedPoint(config.Strict):
    """Surveyed pose of base_link in map."""

    x_m: MapCoordinate
    y_m: MapCoordinate
    yaw_deg: float = 0.0


@dataclass(frozen=True)
class SurveyedPoints(config.Strict):
    """A YAML file: ``points: [{x_m: 1.0, y_m: 2.0, yaw_deg: 90.0}, ...]``."""

    points: tuple[SurveyedPoint, ...]


class LocalizationCalibration(Procedure[AlignmentSample, Alignment]):
    """Calibration of a localizer's frame; see the module.

    Args:
        start: base_link in map at the start of the guided drive.
        points: surveyed poses instead of a drive; empty for the drive.
        lever_m: position of the localizer's mark on the robot; None to solve for it.
    """

    kind: ClassVar[str] = KIND

    def __init__(
        self, start: SE2, points: Sequence[SE2] = (), lever_m: tuple[float, float] | None = (0.0, 0.0)
    ) -> None:
        self.limits = {"position_rms_m": MAX_RMS_M, "outlier_fraction": MAX_OUTLIERS}
        self._start = start
        self._points = points
        self._lever_m = lever_m
        self._source = ""

    def record(self, robot: Robot, guide: Guide) -> Sequence[AlignmentSample]:
        self._source = robot.localizer.info.name
        frame = robot.localizer.info.frame
        guide.tell(f"localizer {self._source!r}: poses are recorded unchanged, in frame {frame!r}")
        return self._stand(robot, guide) if self._points else self._drive(robot, guide)

    def solve(self, captures: Sequence[AlignmentSample]) -> Fit[Alignment]:
        alignment = solve_alignment(captures, self._lever_m)
        way = "surveyed points" if self._points else "guided drive"
        residuals = {"position_rms_m": alignment.rms_m or 0.0, "position_max_m": alignment.max_m or 0.0}
        method = f"{way}, localizer {self._source}, {alignment.samples} positions, {alignment.outliers} outliers"
        return Fit(alignment, config.unparse(replace(alignment, calibration=None)), "", method, residuals)

    def verify(self, solution: Alignment, held_out: Sequence[AlignmentSample]) -> Mapping[str, float]:
        errors_m = np.array([_error_m(solution, sample) for sample in held_out])
        fit = errors_m < INLIER_M
        rms_m = float(np.sqrt(np.mean(errors_m[fit] ** 2))) if fit.any() else math.inf
        return {"position_rms_m": rms_m, "outlier_fraction": 1.0 - float(np.mean(fit))}

    def _drive(self, robot: Robot, guide: Guide) -> list[AlignmentSample]:
        odometry = robot.odometry
        if odometry is None:
            raise CalibrationFailed(
                f"robot {robot.name!r} reports no odometry; a guided drive needs it", "give surveyed --points"
            )
        start = self._start
        guide.ask(
            f"put the robot at x {start.x_m:.2f} m, y {start.y_m:.2f} m, {math.degrees(start.yaw_rad):.0f}°, with "
            f"{STEP_M * STEPS:g} m free ahead and, from there, to the left"
        )
        if not guide.attended:
            robot.placer.place(start, 0.0)
        controller = MotionController(robot.clock, robot.base, robot.head, robot.motion)
        controller.rest()
        poses, measured = _Gathered(odometry), _Gathered(robot.localizer)
        poses.wait(robot, 1)
        path = [Displacement(forward_m=STEP_M)] * STEPS + [Displacement(turn_rad=TURN_RAD)] * TURNS
        path += [Displacement(forward_m=STEP_M)] * STEPS
        remedy = f"clear {STEP_M * STEPS:g} m ahead of the start and to its left, and repeat"
        for index, displacement in enumerate(path):
            what = f"guided drive: motion {index + 1} of {len(path)}"
            execute_motion(controller, displacement, what, remedy)
            poses.take()
            measured.take()
            guide.progress(index + 1, len(path), f"{len(measured.estimates)} measurements")
        robot.clock.sleep_until(robot.clock.now_ns() + seconds_to_ns(1.0))  # for poses in transit
        poses.take()
        measured.take()
        return self._paired(poses.estimates, measured.estimates)

    def _paired(self, odometry: Sequence[PoseEstimate], measured: Sequence[PoseEstimate]) -> list[AlignmentSample]:
        span_s = ns_to_seconds(odometry[-1].stamp_ns - odometry[0].stamp_ns) + 1.0
        history = PoseHistory("odometry", odometry[0].frame, span_s)
        for estimate in odometry:
            history.add(estimate)
        first = odometry[0]
        samples = []
        for estimate in measured:
            if estimate.stamp_ns < first.stamp_ns or (at := history.at(estimate.stamp_ns)) is None:
                continue
            samples.append(_sample(estimate, self._start @ at.pose.relative_to(first.pose)))
        return samples

    def _stand(self, robot: Robot, guide: Guide) -> list[AlignmentSample]:
        samples: list[AlignmentSample] = []
        for index, point in enumerate(self._points):
            guide.ask(f"put the robot at x {point.x_m:.2f} m, y {point.y_m:.2f} m, {math.degrees(point.yaw_rad):.0f}°")
            if not guide.attended:
                robot.placer.place(point, 0.0)
            measured = _Gathered(robot.localizer)
            robot.clock.sleep_until(robot.clock.now_ns() + seconds_to_ns(WINDOW_S))
            measured.take()
            samples += [_sample(estimate, point) for estimate in measured.estimates]
            guide.progress(index + 1, len(self._points), f"{len(measured.estimates)} measurements")
        return samples


class _Gathered:
    """Poses that arrive from a localizer after this object's creation, without lost ones."""

    def __init__(self, localizer: Localizer) -> None:
        self._localizer = localizer
        self._mark = localizer.arrivals().mark
        self.estimates: list[PoseEstimate] = []

    def take(self) -> None:
        """Append the poses that have arrived."""
        arrived = self._localizer.arrivals(self._mark)
        self._mark = arrived.mark
        self.estimates += [estimate for estimate in arrived.estimates if estimate.status is PoseStatus.OK]

    def wait(self, robot: Robot, count: int) -> None:
        """Wait for a number of poses. Raises ``CalibrationFailed`` after a second."""
        clock = robot.clock
        for _ in range(20):
            self.take()
            if len(self.estimates) >= count:
                return
            clock.sleep_until(clock.now_ns() + seconds_to_ns(0.05))
        raise CalibrationFailed(
            f"localizer {self._localizer.info.name!r} delivers nothing", "check that it is on and sees the robot"
        )


def _sample(estimate: PoseEstimate, robot: SE2) -> AlignmentSample:
    pose, knows_yaw = estimate.pose, math.isfinite(estimate.covariance[2, 2])
    return AlignmentSample(pose.x_m, pose.y_m, robot, pose.yaw_rad if knows_yaw else None)


def _error_m(solution: Alignment, sample: AlignmentSample) -> float:
    seen = solution.robot_at(sample.x_m, sample.y_m, sample.robot.yaw_rad)
    return seen.distance_to(sample.robot)
