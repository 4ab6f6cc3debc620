"""``robot-runtime calibrate latency``: latency of a camera's stamps.

The base sweeps to and fro about its axis while the camera captures. The rotation between consecutive images is compared
with that of odometry; the shift in time of best agreement is the latency. At 1 rad/s, 5 ms are about 0.3 degrees.

The last of several sweeps is held out. The latency of odometry's own stamps is part of the result, so that poses and
images agree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.operator_guide import LIVE, Guide
from calibration.procedure import Fit, Procedure
from calibration.start_poses import open_start_pose
from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Intrinsics, Localizer, PoseStatus, RgbdFrame, Robot, Velocity
from robot_runtime.imaging.camera import SourceCamera
from robot_runtime.imaging.latency import KIND, CameraLatency
from robot_runtime.motion.controller import MotionController

Array = NDArray[np.float64]

SWEEPS = 3
SWEEP_S = 2.5
PERIOD_S = 1.7
PEAK_RAD_S = 0.9
"""A sweep is one and a half periods of 14 degrees to each side, so that images overlap without blur."""

MIN_LATENCY_S, MAX_LATENCY_S = -0.1, 0.5
"""Range in which the latency is searched."""

GRID_S = 0.002
FEATURES = 150
MIN_FEATURES = 12
MIN_PICTURES = 15
BORDER_PX = 12
"""Margin to the border of the image's content; it does not move with the scene."""

LIMIT_MS = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class BaseSweep:
    """Images and odometry of a sweep.

    Attributes:
        stamps_ns: int64 (N,), of the images.
        turns_rad: float64 (N - 1,), left turns between consecutive images by their features; NaN with too few.
        odom_ns: int64 (M,), stamps of odometry, in order.
        odom_rad: float64 (M,), unwrapped headings.
    """

    stamps_ns: NDArray[np.int64]
    turns_rad: Array
    odom_ns: NDArray[np.int64]
    odom_rad: Array

    def misfit(self, latency_s: float) -> tuple[float, float, int]:
        """Return sum of squares, scale, and number of turns for a latency of the stamps."""
        at_ns = self.stamps_ns - seconds_to_ns(latency_s)
        # Only images inside odometry's time range under any latency, so that all latencies use the same images.
        earliest_ns, latest_ns = (
            self.stamps_ns - seconds_to_ns(MAX_LATENCY_S),
            self.stamps_ns - seconds_to_ns(MIN_LATENCY_S),
        )
        inside = (earliest_ns >= self.odom_ns[0]) & (latest_ns <= self.odom_ns[-1])
        known = np.isfinite(self.turns_rad) & inside[:-1] & inside[1:]
        turned = np.diff(np.interp(at_ns, self.odom_ns, self.odom_rad))[known]
        seen = self.turns_rad[known]
        power = float(turned @ turned)
        scale = float(seen @ turned) / power if power else 0.0
        return float(((seen - scale * turned) ** 2).sum()), scale, int(known.sum())


@dataclass(frozen=True, slots=True)
class SolvedLatency:
    """Solved latency.

    Attributes:
        left_s: latency beyond the one in force.
        before_s: latency in force during the recording.
    """

    left_s: float
    before_s: float

    @property
    def latency(self) -> CameraLatency:
        return CameraLatency(self.before_s + self.left_s)


class LatencyProcedure(Procedure[BaseSweep, SolvedLatency]):
    """Calibration of a camera's latency, with odometry; see the module."""

    kind: ClassVar[str] = KIND
    limits: Mapping[str, float] = {"latency_difference_ms": LIMIT_MS}

    def __init__(self, sweeps: int = SWEEPS, sweep_s: float = SWEEP_S) -> None:
        self._sweeps, self._sweep_s = sweeps, sweep_s
        self._before_s = 0.0

    def record(self, robot: Robot, guide: Guide) -> Sequence[BaseSweep]:
        if robot.odometry is None:
            raise CalibrationFailed(
                f"robot {robot.name!r} reports no odometry to compare images with",
                "calibrate on a robot whose driver gives 'odometry'",
            )
        self._before_s = robot.camera.latency_s if isinstance(robot.camera, SourceCamera) else 0.0
        guide.ask("put the robot before a textured surface, 1 m away or farther, free to turn on the spot")
        if robot.simulation is not None:
            open_start_pose(robot, robot.simulation)
        motion = MotionController(robot.clock, robot.base, robot.head, robot.motion)
        robot.head.command(0.0, 0.0)
        sweeps = []
        for number in range(self._sweeps):
            motion.rest()
            sweeps.append(_record_sweep(robot, robot.odometry, self._sweep_s, guide))
            guide.progress(number + 1, self._sweeps, f"{len(sweeps[-1].stamps_ns)} pictures")
        return sweeps

    def split(self, captures: Sequence[BaseSweep]) -> tuple[list[BaseSweep], list[BaseSweep]]:
        return list(captures[:-1]), list(captures[-1:])

    def solve(self, captures: Sequence[BaseSweep]) -> Fit[SolvedLatency]:
        left_s, deviation_s, rms_rad = _solve(captures)
        solved = SolvedLatency(left_s, self._before_s)
        pictures = sum(len(sweep.stamps_ns) for sweep in captures)
        residuals = {"turn_rms_deg": math.degrees(rms_rad), "latency_std_ms": 1e3 * deviation_s}
        method = f"{len(captures)} swings of the base, {pictures} pictures against odometry"
        return Fit(solved, config.unparse(solved.latency), "", method, residuals)

    def verify(self, solution: SolvedLatency, held_out: Sequence[BaseSweep]) -> Mapping[str, float]:
        left_s, _, _ = _solve(held_out)
        return {"latency_difference_ms": 1e3 * abs(left_s - solution.left_s)}


def _record_sweep(robot: Robot, odometry: Localizer, sweep_s: float, guide: Guide) -> BaseSweep:
    clock, camera, base = robot.clock, robot.camera, robot.base
    intrinsics = camera.info.intrinsics
    mark = odometry.arrivals().mark
    clock.sleep(MAX_LATENCY_S)
    start_ns = clock.now_ns()
    frames: list[RgbdFrame] = []
    turns_rad: list[float] = []
    after_ns = start_ns
    try:
        while (since_s := ns_to_seconds(clock.now_ns() - start_ns)) < sweep_s:
            # A cosine starts with its greatest velocity; the base's ramp approaches it.
            base.command(Velocity(0.0, PEAK_RAD_S * math.cos(2 * math.pi * since_s / PERIOD_S)))
            frame = camera.capture(after_ns, 1.0)
            after_ns = frame.stamp_ns + 1
            if frames:
                turns_rad.append(turn_between(frames[-1].rgb, frame.rgb, intrinsics))
            frames.append(frame)
    finally:
        base.stop()
    guide.picture(LIVE, frames[-1].rgb)
    clock.sleep(MAX_LATENCY_S)  # for poses in transit
    arrived = [e for e in odometry.arrivals(mark).estimates if e.status is PoseStatus.OK]
    arrived.sort(key=lambda estimate: estimate.stamp_ns)
    if len(arrived) < 2:
        raise CalibrationFailed(
            f"odometry {odometry.info.name!r} delivers nothing", "check the base's driver: poses must keep coming"
        )
    steps = [wrap_angle(b.pose.yaw_rad - a.pose.yaw_rad) for a, b in pairwise(arrived)]
    return BaseSweep(
        np.array([frame.stamp_ns for frame in frames], np.int64),
        np.array(turns_rad),
        np.array([estimate.stamp_ns for estimate in arrived], np.int64),
        np.concatenate([[0.0], np.cumsum(steps)]),
    )


def turn_between(before: NDArray[np.uint8], after: NDArray[np.uint8], intrinsics: Intrinsics) -> float:
    """Return the left turn of a level camera between two images, radians; NaN if too few features can be tracked.

    Args:
        before: uint8 (H, W, 3).
        after: uint8 (H, W, 3).
        intrinsics: intrinsics of color and depth.
    """
    first, second = (cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2GRAY) for rgb in (before, after))
    filled = cv2.erode((first > 0).astype(np.uint8), np.ones((3, 3), np.uint8), iterations=BORDER_PX, borderValue=0)
    corners = cv2.goodFeaturesToTrack(first, FEATURES, 0.01, 8, mask=filled)
    if corners is None or len(corners) < MIN_FEATURES:
        return math.nan
    moved, status, _ = cv2.calcOpticalFlowPyrLK(first, second, corners, corners.copy(), winSize=(21, 21), maxLevel=3)
    followed = status.reshape(-1) == 1
    if followed.sum() < MIN_FEATURES:
        return math.nan
    azimuths = [
        np.arctan2(points.reshape(-1, 2)[followed, 0] - intrinsics.cx, intrinsics.fx) for points in (corners, moved)
    ]
    # Features move to the right when the robot turns left.
    return float(np.median(azimuths[1] - azimuths[0]))


def _solve(sweeps: Sequence[BaseSweep]) -> tuple[float, float, float]:
    """Return the latency, its standard deviation, and the rms error of the turns, radians."""
    grid_s = np.arange(MIN_LATENCY_S, MAX_LATENCY_S + GRID_S / 2, GRID_S)
    counts = [sweep.misfit(0.0)[2] for sweep in sweeps]
    if min(counts) < MIN_PICTURES:
        raise CalibrationFailed(
            f"latency: only {min(counts)} turns of a sweep could be tracked from image to image",
            "put the robot before a textured surface, in even light, and repeat",
        )
    misfits = np.array([sum(sweep.misfit(latency_s)[0] for sweep in sweeps) for latency_s in grid_s])
    best = int(np.argmin(misfits))
    scale = sweeps[0].misfit(float(grid_s[best]))[1]
    if best in (0, len(grid_s) - 1) or not 0.8 < scale < 1.25:
        raise CalibrationFailed(
            f"latency: images and odometry do not agree: the turns by images are {scale:.2f} of odometry's",
            "check that the base turns and that the camera's intrinsics are right",
        )
    left, middle, right = misfits[best - 1 : best + 2]
    curvature = float(left - 2 * middle + right)
    latency_s = float(grid_s[best]) + GRID_S * float(left - right) / (2 * curvature)
    variance = middle / (sum(counts) - 2)
    return latency_s, GRID_S * math.sqrt(2 * variance / curvature), math.sqrt(variance)
