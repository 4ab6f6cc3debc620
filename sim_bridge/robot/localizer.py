"""Simulated localizers: a pose source sampled at a rate, with latency, noise and dropouts."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from robot_runtime.common import config
from robot_runtime.common.clock import NS_PER_S, Clock, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.quantities import AngleSpread, Latency, Rate, ShortTime, Spread
from robot_runtime.hal import BufferedLocalizer, LocalizerInfo, PoseEstimate, PoseHistory
from sim_bridge.robot.device import SimDevice


@dataclass(frozen=True)
class LocalizerOptions(config.Strict):
    """Options of the measured poses; the defaults are exact and immediate.

    Attributes:
        source: ``ground_truth`` (frame map) or ``odometry`` (frame odom).
        latency_s: time from measurement to arrival.
        noise_m: standard deviation of white noise in x and in y.
        noise_deg: standard deviation of white noise in yaw.
        dropout_probability: probability that a pose is lost, and all further ones for ``dropout_s``.
    """

    source: Literal["ground_truth", "odometry"] = "ground_truth"
    rate_hz: Rate = 30.0
    latency_s: Latency = 0.0
    noise_m: Spread = 0.0
    noise_deg: AngleSpread = 0.0
    dropout_probability: Annotated[float, Field(ge=0, lt=1)] = 0.0
    dropout_s: ShortTime = 0.0


class SimLocalizer(SimDevice, BufferedLocalizer):
    """A localizer that samples a pose."""

    def __init__(self, name: str, frame: str, clock: Clock, read: Callable[[], SE2], options: LocalizerOptions) -> None:
        SimDevice.__init__(self, name)
        info = LocalizerInfo(name, frame, options.rate_hz, is_truth=True)
        BufferedLocalizer.__init__(self, info, clock, PoseHistory(name, frame), 1 / options.rate_hz)
        self._read = read
        self._options = options
        self._random = np.random.default_rng(0)
        self._noise_rad = math.radians(options.noise_deg)
        variances = (options.noise_m**2, options.noise_m**2, self._noise_rad**2)
        self._covariance = np.diag(np.array(variances, np.float64))
        self._covariance.flags.writeable = False
        self._latency_ns = seconds_to_ns(options.latency_s)
        self._in_transit: deque[PoseEstimate] = deque()
        self._next_ns = 0
        self._lost_until_ns = 0

    def connect(self) -> None:
        if not self._connected:
            super().connect()
            self._reset()

    def restart(self, random: np.random.Generator) -> None:
        """Clear the history after the robot was placed, and draw errors from ``random``."""
        self._random = random
        if self._connected:
            self._reset()

    def on_step(self, now_ns: int) -> None:
        """Measure when a period has passed, and deliver the poses whose latency has passed."""
        in_transit = self._in_transit
        if not self._connected or (now_ns < self._next_ns and not in_transit):
            return
        if now_ns >= self._next_ns:
            self._measure(now_ns)
        while in_transit and in_transit[0].stamp_ns + self._latency_ns <= now_ns:
            self._history.add(in_transit.popleft())

    def _reset(self) -> None:
        self._history.clear()
        self._in_transit.clear()
        self._lost_until_ns = self._next_ns = self._clock.now_ns()
        self.on_step(self._clock.now_ns())

    def _measure(self, now_ns: int) -> None:
        options = self._options
        # Multiples of the period since the clock's start, so that equal rates measure at equal instants.
        rate_hz = options.rate_hz
        self._next_ns = round((math.floor(now_ns / NS_PER_S * rate_hz + 1e-6) + 1) / rate_hz * NS_PER_S)
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
        self._in_transit.append(PoseEstimate(now_ns, pose, self._info.frame, self._covariance))
