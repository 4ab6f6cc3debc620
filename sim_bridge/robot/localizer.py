"""Simulated localizers: a pose source sampled at a rate, with latency, noise and dropouts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from robot_runtime.common import config
from robot_runtime.common.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.config import NonNegative, Positive
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate
from robot_runtime.hal.pose_history import PoseHistory, pose_at
from sim_bridge.robot.device import SimDevice


@dataclass(frozen=True)
class LocalizerOptions:
    """How poses are measured; the defaults are exact and immediate.

    Attributes:
        source: ``ground_truth`` (frame map) or ``odometry`` (frame odom).
        latency_s: from measurement to arrival.
        noise_m, noise_deg: standard deviations of each pose, white, in x and in y, and in yaw.
        dropout_probability: that a pose is lost; once that happens all are lost for ``dropout_s``.
    """

    source: Literal["ground_truth", "odometry"] = "ground_truth"
    rate_hz: Positive = 30.0
    latency_s: NonNegative = 0.0
    noise_m: NonNegative = 0.0
    noise_deg: NonNegative = 0.0
    dropout_probability: Annotated[float, Field(ge=0, lt=1)] = 0.0
    dropout_s: NonNegative = 0.0

    __pydantic_config__ = config.STRICT


class SimLocalizer(SimDevice, Localizer):
    """Samples a pose.

    Args:
        name: for messages and logs. frame: of the poses.
        read: the true or measured pose now.
    """

    def __init__(self, name: str, frame: str, clock: Clock, read: Callable[[], SE2], options: LocalizerOptions) -> None:
        super().__init__(name)
        self._clock = clock
        self._read = read
        self._options = options
        self._info = LocalizerInfo(name, frame, options.rate_hz)
        self._history = PoseHistory(name, frame)
        self._random = np.random.default_rng(0)
        self._noise_rad = math.radians(options.noise_deg)
        variances = (options.noise_m**2, options.noise_m**2, self._noise_rad**2)
        self._covariance = np.diag(np.array(variances, np.float64))
        self._covariance.flags.writeable = False
        self._latency_ns = seconds_to_ns(options.latency_s)
        self._on_the_way: deque[PoseEstimate] = deque()
        self._next_ns = 0
        self._lost_until_ns = 0

    @property
    def info(self) -> LocalizerInfo:
        return self._info

    def connect(self) -> None:
        if not self._connected:
            super().connect()
            self._forget()

    def latest(self, max_age_s: float) -> PoseEstimate:
        self._require_connected()
        return self._history.latest(self._clock.now_ns, max_age_s)

    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        self._require_connected()
        return pose_at(self._history, self._clock, stamp_ns, timeout_s, poll_s=1 / self._options.rate_hz)

    def arrivals(self, after: int = 0) -> Arrivals:
        self._require_connected()
        return self._history.arrivals(after)

    def restart(self, random: np.random.Generator) -> None:
        """The robot was placed: forget where it was, and draw errors from ``random``."""
        self._random = random
        if self._connected:
            self._forget()

    def on_step(self, now_ns: int) -> None:
        """Measure when it is time to; deliver what has arrived."""
        on_the_way = self._on_the_way
        if not self._connected or (now_ns < self._next_ns and not on_the_way):
            return
        if now_ns >= self._next_ns:
            self._measure(now_ns)
        while on_the_way and on_the_way[0].stamp_ns + self._latency_ns <= now_ns:
            self._history.add(on_the_way.popleft())

    def _forget(self) -> None:
        self._history.clear()
        self._on_the_way.clear()
        self._lost_until_ns = self._next_ns = self._clock.now_ns()
        self.on_step(self._clock.now_ns())

    def _measure(self, now_ns: int) -> None:
        options = self._options
        # Multiples of the period since the clock's start, so that equal rates measure at equal instants.
        self._next_ns = seconds_to_ns(
            (math.floor(ns_to_seconds(now_ns) * options.rate_hz + 1e-6) + 1) / options.rate_hz
        )
        if options.dropout_probability:
            if self._random.random() < options.dropout_probability:
                self._lost_until_ns = now_ns + max(1, seconds_to_ns(options.dropout_s))
            if now_ns < self._lost_until_ns:
                return
        pose = self._read()
        if options.noise_m or self._noise_rad:
            x, y, yaw = self._random.standard_normal(3).tolist()
            pose = SE2(
                pose.x_m + x * options.noise_m,
                pose.y_m + y * options.noise_m,
                wrap_angle(pose.yaw_rad + yaw * self._noise_rad),
            )
        self._on_the_way.append(PoseEstimate(now_ns, pose, self._info.frame, self._covariance))
