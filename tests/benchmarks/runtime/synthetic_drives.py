"""Synthetic drives with the measurements of odometry and absolute localizers, for benchmarks and tests.

All are pure functions of their arguments. The robot drives as an agent does: 0.25 m ahead or a turn of 30 degrees, at
rest in between. The errors are those of ``launch/robots/sim-noisy.yaml`` and of ultrasonic beacons.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import NotConnected
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate
from robot_runtime.hal.events import Event
from robot_runtime.hal.pose_history import PoseHistory, pose_at

FORWARD_M, TURN_RAD = 0.25, math.radians(30)
SPEED_M_S, SPEED_RAD_S = 0.3, 1.0
REST_S = 0.6
ODOMETRY_HZ = 50

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Drive:
    """One drive, sampled at odometry's rate.

    Attributes:
        stamps_ns: stamps of the samples.
        truth: base_link in map.
        odometry: base_link in odom.
        moving: per sample, whether the robot moves.
        rests: indices of the samples at which an action has ended and the robot has come to rest, the start first.
    """

    stamps_ns: list[int]
    truth: list[SE2]
    odometry: list[SE2]
    moving: list[bool]
    rests: list[int]

    def at(self, stamp_ns: int) -> SE2:
        """The true pose at an instant within the drive."""
        index = min(max(1, bisect_right(self.stamps_ns, stamp_ns)), len(self.stamps_ns) - 1)
        before_ns, after_ns = self.stamps_ns[index - 1], self.stamps_ns[index]
        return self.truth[index - 1].interpolate(
            self.truth[index], min(1.0, max(0.0, (stamp_ns - before_ns) / (after_ns - before_ns)))
        )


@dataclass(frozen=True)
class Beacons:
    """Errors of an absolute localizer.

    Attributes:
        rate_hz: rate of measurements.
        noise_m: standard deviation of positions.
        noise_deg: standard deviation of headings; None if it measures none.
        latency_s: smallest delay of a measurement.
        jitter_s: largest additional delay; beyond a period, measurements overtake each other.
        outliers: fraction of the measurements with errors of up to ``outlier_m`` in each direction.
        outlier_m: see ``outliers``.
        dropouts_per_min: number of times per minute without measurements for ``dropout_s``.
        dropout_s: see ``dropouts_per_min``.
    """

    rate_hz: float = 8.0
    noise_m: float = 0.02
    noise_deg: float | None = None
    latency_s: float = 0.08
    jitter_s: float = 0.0
    outliers: float = 0.05
    outlier_m: float = 1.5
    dropouts_per_min: float = 3.0
    dropout_s: float = 2.0

    @property
    def covariance(self) -> Array:
        """Covariance that the localizer reports, float64 (3, 3)."""
        yaw = math.inf if self.noise_deg is None else math.radians(self.noise_deg) ** 2
        return np.diag((self.noise_m**2, self.noise_m**2, yaw))


def make_drive(actions: int, seed: int, start: SE2 | None = None) -> Drive:
    """Make a drive of random actions, two of three ahead, after one second at rest."""
    random = np.random.default_rng((seed, 0))
    dt_s = 1 / ODOMETRY_HZ
    pose, odometry = start or SE2(1.0, 2.0, 0.5), SE2()
    drive = Drive([], [], [], [], [])

    def rest(seconds: float) -> None:
        for _ in range(round(seconds / dt_s)):
            sample(moving=False)

    def sample(moving: bool) -> None:
        drive.stamps_ns.append(seconds_to_ns(1.0) + round(len(drive.stamps_ns) * 1e9 * dt_s))
        drive.truth.append(pose)
        drive.odometry.append(odometry)
        drive.moving.append(moving)

    rest(1.0)
    drive.rests.append(len(drive.truth) - 1)
    for _ in range(actions):
        forward_m = turn_rad = 0.0
        if random.random() < 2 / 3:
            forward_m = FORWARD_M
        else:
            turn_rad = TURN_RAD * random.choice((-1, 1))
        steps = math.ceil((forward_m / SPEED_M_S + abs(turn_rad) / SPEED_RAD_S) / dt_s)
        for _ in range(steps):
            pose = _moved(pose, forward_m / steps, turn_rad / steps)
            way, about, heading = random.standard_normal(3).tolist()
            ahead_m = forward_m / steps * 1.01 + 0.005 * math.sqrt(forward_m / steps) * way
            turned = turn_rad / steps * 0.995 + 0.01 * math.sqrt(abs(turn_rad) / steps) * about
            turned += 0.005 * math.sqrt(forward_m / steps) * heading
            odometry = _moved(odometry, ahead_m, turned)
            sample(moving=True)
        rest(REST_S)
        drive.rests.append(len(drive.truth) - 1)
    return drive


def measure(drive: Drive, beacons: Beacons, seed: int, frame: str = "map") -> list[tuple[int, PoseEstimate]]:
    """Measurements of an absolute localizer: times of arrival and estimates, in the order of arrival."""
    random = np.random.default_rng((seed, 1))
    covariance = beacons.covariance
    period_ns = seconds_to_ns(1 / beacons.rate_hz)
    silent_until_ns = 0
    found = []
    for stamp_ns in range(drive.stamps_ns[0], drive.stamps_ns[-1], period_ns):
        dropped, wild, late = random.random(3)
        noise, far = random.standard_normal(3).tolist(), random.uniform(-1, 1, 2).tolist()
        if dropped < beacons.dropouts_per_min / 60 / beacons.rate_hz and stamp_ns > silent_until_ns:
            silent_until_ns = stamp_ns + seconds_to_ns(beacons.dropout_s)
        if stamp_ns < silent_until_ns:
            continue
        truth = drive.at(stamp_ns)
        (dx, dy), scale_m = (far, beacons.outlier_m) if wild < beacons.outliers else (noise[:2], beacons.noise_m)
        yaw = 0.0 if beacons.noise_deg is None else truth.yaw_rad + math.radians(beacons.noise_deg) * noise[2]
        pose = SE2(truth.x_m + scale_m * dx, truth.y_m + scale_m * dy, wrap_angle(yaw))
        arrival_ns = stamp_ns + seconds_to_ns(beacons.latency_s + beacons.jitter_s * late)
        found.append((arrival_ns, PoseEstimate(stamp_ns, pose, frame, covariance)))
    return sorted(found, key=lambda item: item[0])


def odometry_of(drive: Drive, latency_s: float = 0.0) -> list[tuple[int, PoseEstimate]]:
    """Odometry of a drive: times of arrival and estimates."""
    samples = zip(drive.stamps_ns, drive.odometry, strict=True)
    return [(stamp_ns + seconds_to_ns(latency_s), PoseEstimate(stamp_ns, pose, "odom")) for stamp_ns, pose in samples]


class ReplayedLocalizer(Localizer):
    """Localizer whose estimates and events arrive at listed times.

    Args:
        clock: clock of the times.
        info: description of the localizer.
        arrivals: times of arrival (Clock nanoseconds) with estimates or events, in order, in the frame of ``info``.
    """

    def __init__(self, clock: Clock, info: LocalizerInfo, arrivals: Sequence[tuple[int, PoseEstimate | Event]]) -> None:
        self._clock, self._info, self._coming = clock, info, arrivals
        self._next = 0
        self._history = PoseHistory(info.name, info.frame)
        self._connected = False

    @override
    @property
    def info(self) -> LocalizerInfo:
        return self._info

    @override
    def connect(self) -> None:
        self._connected = True

    @override
    def close(self) -> None:
        self._connected = False

    def forget(self) -> None:
        """Clear the history, after the robot was moved."""
        self._history.clear()

    @override
    def latest(self, max_age_s: float) -> PoseEstimate:
        self._receive()
        return self._history.latest(self._clock.now_ns, max_age_s)

    @override
    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        return pose_at(self._history, self._clock, stamp_ns, timeout_s, 0.01, self._receive)

    @override
    def arrivals(self, after: int = 0) -> Arrivals:
        self._receive()
        return self._history.arrivals(after)

    def _receive(self) -> None:
        if not self._connected:
            raise NotConnected(f"localizer {self._info.name!r}: is not connected", "call connect() before using it")
        take: dict[type, Callable[..., None]] = {PoseEstimate: self._history.add, Event: self._history.report}
        while self._next < len(self._coming) and self._coming[self._next][0] <= self._clock.now_ns():
            item = self._coming[self._next][1]
            take[type(item)](item)
            self._next += 1


def _moved(pose: SE2, forward_m: float, turn_rad: float) -> SE2:
    """Pose after a short arc, by its mean heading."""
    heading_rad = pose.yaw_rad + turn_rad / 2
    return SE2(
        pose.x_m + forward_m * math.cos(heading_rad),
        pose.y_m + forward_m * math.sin(heading_rad),
        wrap_angle(pose.yaw_rad + turn_rad),
    )
