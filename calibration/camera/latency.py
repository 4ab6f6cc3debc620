"""``robot-runtime calibrate latency``: how late a camera's stamps are.

The base swings to and fro about its axis while the camera delivers every picture that it can. From one picture to the
next the scene moves by as much as the robot turned between the two exposures, and the odometry says when it was turned
so: the shift in time under which both agree is what the stamps are late by. At a radian a second, 5 ms are a fifth of a
degree, which is about a pixel.

The swing is repeated; of the last one nothing is solved from. What odometry's own stamps are late by is in the result:
poses and pictures agree, which is what matters.
"""

from __future__ import annotations

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
"""A swing goes to and fro one and a half times, by 14 degrees to each side: pictures still overlap, and do not blur."""

MIN_LATENCY_S, MAX_LATENCY_S = -0.1, 0.5
"""Between which the latency is looked for."""

GRID_S = 0.002
FEATURES = 150
MIN_FEATURES = 12
MIN_PICTURES = 15
BORDER_PX = 12
"""From the edge of what the sensor fills: the edge itself does not move with the scene."""

LIMIT_MS = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class BaseSweep:
    """One swing.

    Attributes:
        stamps_ns: int64 (N,), of the pictures. turns_rad: float64 (N - 1,), how far the camera turned left from each to
            the next by what it saw; NaN where it saw too little.
        odom_ns, odom_rad: the odometry's stamps and unwrapped headings, in order.
    """

    stamps_ns: NDArray[np.int64]
    turns_rad: Array
    odom_ns: NDArray[np.int64]
    odom_rad: Array

    def misfit(self, latency_s: float) -> tuple[float, float, int]:
        """Sum of squares, scale, and number of turns, if the pictures were exposed so long before their stamps."""
        at_ns = self.stamps_ns - seconds_to_ns(latency_s)
        # Those whose turn odometry knows under any latency, so that all are judged by the same ones.
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
    """What swings say: ``left_s`` is what the stamps are late by beyond what was corrected already (``before_s``)."""

    left_s: float
    before_s: float

    @property
    def latency(self) -> CameraLatency:
        return CameraLatency(self.before_s + self.left_s)


class LatencyProcedure(Procedure[BaseSweep, SolvedLatency]):
    """Needs a camera of any kind, and the base's odometry."""

    kind: ClassVar[str] = KIND
    limits: Mapping[str, float] = {"latency_difference_ms": LIMIT_MS}

    def __init__(self, sweeps: int = SWEEPS, sweep_s: float = SWEEP_S) -> None:
        self._sweeps, self._sweep_s = sweeps, sweep_s
        self._before_s = 0.0

    def record(self, robot: Robot, guide: Guide) -> Sequence[BaseSweep]:
        if robot.odometry is None:
            raise CalibrationFailed(
                f"robot {robot.name!r} reports no odometry, which pictures are compared with",
                "calibrate on a robot whose driver gives 'odometry'",
            )
        self._before_s = robot.camera.latency_s if isinstance(robot.camera, SourceCamera) else 0.0
        guide.ask("put the robot before something with texture, 1 m away or farther, free to turn on the spot")
        if robot.simulation is not None:
            open_start_pose(robot, robot.simulation)
        motion = MotionController(robot.clock, robot.base, robot.head)
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
        found = SolvedLatency(left_s, self._before_s)
        pictures = sum(len(sweep.stamps_ns) for sweep in captures)
        residuals = {"turn_rms_deg": math.degrees(rms_rad), "latency_std_ms": 1e3 * deviation_s}
        method = f"{len(captures)} swings of the base, {pictures} pictures against odometry"
        return Fit(found, config.unparse(found.latency), "", method, residuals)

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
            # A cosine begins with the fastest: the base's own ramp takes the place of its beginning.
            base.command(Velocity(0.0, PEAK_RAD_S * math.cos(2 * math.pi * since_s / PERIOD_S)))
            frame = camera.capture(after_ns, 1.0)
            after_ns = frame.stamp_ns + 1
            if frames:
                turns_rad.append(turn_between(frames[-1].rgb, frame.rgb, intrinsics))
            frames.append(frame)
    finally:
        base.stop()
    guide.picture(LIVE, frames[-1].rgb)
    clock.sleep(MAX_LATENCY_S)  # what is still on its way
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
    """By how many radians a level camera turned left from one picture to the next; NaN if too little can be followed.

    Args:
        before, after: uint8 (H, W, 3).
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
    # What is on the right moves further right in the picture when the robot turns left.
    return float(np.median(azimuths[1] - azimuths[0]))


def _solve(sweeps: Sequence[BaseSweep]) -> tuple[float, float, float]:
    """The latency, its standard deviation, and what the turns are off by (rms, radians)."""
    grid_s = np.arange(MIN_LATENCY_S, MAX_LATENCY_S + GRID_S / 2, GRID_S)
    counts = [sweep.misfit(0.0)[2] for sweep in sweeps]
    if min(counts) < MIN_PICTURES:
        raise CalibrationFailed(
            f"latency: only {min(counts)} turns of a swing could be followed from picture to picture",
            "put the robot before something with texture, in even light, and repeat",
        )
    misfits = np.array([sum(sweep.misfit(latency_s)[0] for sweep in sweeps) for latency_s in grid_s])
    best = int(np.argmin(misfits))
    scale = sweeps[0].misfit(float(grid_s[best]))[1]
    if best in (0, len(grid_s) - 1) or not 0.8 < scale < 1.25:
        raise CalibrationFailed(
            f"latency: pictures and odometry do not agree: turns seen are {scale:.2f} of those reported",
            "see that the base really turns and that the camera's intrinsics are right",
        )
    left, middle, right = misfits[best - 1 : best + 2]
    curvature = float(left - 2 * middle + right)
    latency_s = float(grid_s[best]) + GRID_S * float(left - right) / (2 * curvature)
    variance = middle / (sum(counts) - 2)
    return latency_s, GRID_S * math.sqrt(2 * variance / curvature), math.sqrt(variance)
