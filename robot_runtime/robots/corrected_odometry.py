"""Calibrated odometry: poses and velocities of a base with the errors of wheels and gyro corrected.

``robot-runtime calibrate odometry`` writes the file, and the robot's YAML names it as ``odometry``. It is stamped
(``robot_runtime.robots.calibration_file``)::

    linear_scale: 1.0098         # meters reported per meter driven
    angular_scale: 0.9951        # radians reported per radian turned
    heading: wheels              # source of the base's heading: wheels, or its gyro
    wheel_radius_m: WheelRadius
    wheel_separation_m: WheelSeparation
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import override

from robot_runtime.common import config
from robot_runtime.common.clock import Clock
from robot_runtime.common.geometry import SE2
from robot_runtime.common.host_checks import Finding
from robot_runtime.common.quantities import WheelRadius, WheelSeparation
from robot_runtime.hal import (
    Arrivals,
    Base,
    BaseInfo,
    BaseState,
    Localizer,
    LocalizerInfo,
    PoseEstimate,
    Robot,
    Velocity,
    Zone,
)
from robot_runtime.hal.pose_history import PoseHistory, pose_at

KIND = "odometry"
"""Kind of the calibration."""

Scale = Annotated[float, Field(gt=0.5, lt=2.0)]

Heading = Literal["wheels", "gyro"]


@dataclass(frozen=True)
class OdometryCalibration(config.Strict):
    """Errors of a base's odometry; see the module's docstring for the file.

    Attributes:
        gyro_scale: factor for the gyro's readings, for bases whose heading comes from it.
    """

    linear_scale: Scale
    angular_scale: Scale
    heading: Heading
    wheel_radius_m: WheelRadius
    wheel_separation_m: WheelSeparation | None = None
    gyro_scale: float | None = None

    @classmethod
    def from_scales(
        cls, linear_scale: float, angular_scale: float, heading: Heading, radius_m: float, separation_m: float
    ) -> "OdometryCalibration":
        """The calibration of a base that computes with this wheel radius and separation.

        Wheels that are smaller than assumed report more meters than they drive. Radians by wheels are the difference of
        two distances over the separation: too large a radius reports too many, too large a separation too few.
        """
        true_radius_m = radius_m / linear_scale
        if heading == "gyro":
            return cls(linear_scale, angular_scale, heading, true_radius_m, gyro_scale=1 / angular_scale)
        true_separation_m = separation_m * angular_scale / linear_scale
        return cls(linear_scale, angular_scale, heading, true_radius_m, wheel_separation_m=true_separation_m)


def calibrated(robot: Robot, calibration: OdometryCalibration) -> Robot:
    """The robot with corrected odometry, of its base and of every localizer that reports in ``odom``."""
    corrected_sources: dict[Localizer, Localizer] = {}

    def corrected(source: Localizer) -> Localizer:
        if source.info.frame != "odom":
            return source
        return corrected_sources.setdefault(source, CalibratedOdometry(source, robot.clock, calibration))

    return replace(
        robot,
        base=CalibratedBase(robot.base, calibration),
        localizer=corrected(robot.localizer),
        odometry=None if robot.odometry is None else corrected(robot.odometry),
    )


class OdometryCorrection:
    """Accumulates the true motion from reported odometry."""

    def __init__(self, calibration: OdometryCalibration) -> None:
        self._calibration = calibration
        self._last: SE2 | None = None
        self._pose = SE2()

    def update(self, reported: SE2) -> SE2:
        """The corrected pose of the next reported pose; both start at the same one."""
        if self._last is None:
            self._last = self._pose = reported
        if reported != self._last:
            moved = reported.relative_to(self._last)
            self._last = reported
            half_rad = moved.yaw_rad / 2
            # The chord of an arc lies along its mean heading.
            forward_m = moved.x_m * math.cos(half_rad) + moved.y_m * math.sin(half_rad)
            forward_m /= self._calibration.linear_scale
            turn_rad = moved.yaw_rad / self._calibration.angular_scale
            x_m, y_m = forward_m * math.cos(turn_rad / 2), forward_m * math.sin(turn_rad / 2)
            self._pose = self._pose @ SE2(x_m, y_m, turn_rad)
        return self._pose


class CalibratedBase(Base):
    """A base whose states have corrected odometry and velocity."""

    def __init__(self, base: Base, calibration: OdometryCalibration) -> None:
        self._base, self._calibration = base, calibration
        self._correction = OdometryCorrection(calibration)
        self.motors = base.motors

    @property
    @override
    def info(self) -> BaseInfo:
        return self._base.info

    @override
    def connect(self) -> None:
        self._base.connect()

    @override
    def close(self) -> None:
        self._base.close()

    @override
    def diagnose(self) -> Sequence[Finding]:
        return self._base.diagnose()

    @override
    def state(self, max_age_s: float) -> BaseState:
        state = self._base.state(max_age_s)
        velocity = Velocity(
            state.velocity.linear_m_s / self._calibration.linear_scale,
            state.velocity.angular_rad_s / self._calibration.angular_scale,
        )
        return replace(state, odom=self._correction.update(state.odom), velocity=velocity)

    @override
    def touched(self) -> Zone:
        return self._base.touched()

    @override
    def command(self, velocity: Velocity) -> Velocity:
        return self._base.command(velocity)

    @override
    def stop(self) -> None:
        self._base.stop()

    @override
    def emergency_stop(self) -> None:
        self._base.emergency_stop()

    @override
    def release_emergency_stop(self) -> None:
        self._base.release_emergency_stop()


class CalibratedOdometry(Localizer):
    """A localizer in ``odom`` whose poses are corrected as they arrive."""

    def __init__(self, source: Localizer, clock: Clock, calibration: OdometryCalibration) -> None:
        self._source, self._clock, self._calibration = source, clock, calibration
        self._history = PoseHistory(source.info.name, source.info.frame)
        self._correction = OdometryCorrection(calibration)
        self._mark = 0

    @property
    @override
    def info(self) -> LocalizerInfo:
        return self._source.info

    @override
    def connect(self) -> None:
        self._source.connect()

    @override
    def close(self) -> None:
        self._source.close()

    @override
    def latest(self, max_age_s: float) -> PoseEstimate:
        self._source.latest(max_age_s)
        self._take_arrivals()
        return self._history.latest(self._clock.now_ns, max_age_s)

    @override
    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        self._source.at(stamp_ns, timeout_s)  # waits for the measurement
        self._take_arrivals()
        return pose_at(self._history, self._clock, stamp_ns, 0.0, 1 / self.info.rate_hz)

    @override
    def arrivals(self, after: int = 0) -> Arrivals:
        self._take_arrivals()
        return self._history.arrivals(after)

    def _take_arrivals(self) -> None:
        arrived = self._source.arrivals(self._mark)
        self._mark = arrived.mark
        if arrived.restarted:
            self._history.clear()
            self._correction = OdometryCorrection(self._calibration)
        for estimate in arrived.estimates:
            self._history.add(replace(estimate, pose=self._correction.update(estimate.pose)))
        for event in arrived.events:
            self._history.report(event)
