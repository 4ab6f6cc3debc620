"""The fake pan-tilt: constant speed to the goal, then a settling time."""

import math

from drivers.fake.device import FakeDevice
from drivers.fake.faults import StuckHead
from drivers.fake.ground_truth import GroundTruth
from robot_runtime.common.clock import SimulatedClock, ns_to_seconds, seconds_to_ns
from robot_runtime.hal import Head, HeadLimits, HeadState, fresh
from robot_runtime.hal.fault_schedule import Script


class FakeHead(FakeDevice, Head):
    """Pan-tilt that turns both joints at full speed, ``moving`` until it was at the goal for ``settle_s``."""

    def __init__(self, clock: SimulatedClock, truth: GroundTruth, script: Script, limits: HeadLimits) -> None:
        super().__init__("head", clock, script)
        self._truth = truth
        self._limits = limits
        self._goal = (truth.pan_rad, truth.tilt_rad)
        self._arrived_ns: int | None = clock.now_ns() - seconds_to_ns(limits.settle_s)  # it begins at rest
        self._state: HeadState | None = None
        self._stepped_ns = clock.now_ns()

    @property
    def limits(self) -> HeadLimits:
        return self._limits

    def state(self, max_age_s: float) -> HeadState:
        self._require_connected()
        return fresh("head", self._state, self._clock.now_ns(), max_age_s)

    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        self._require_connected()
        goal = self._limits.clip(pan_rad, tilt_rad)
        if goal != self._goal:
            self._goal = goal
            self._arrived_ns = None
            self._sense()
        return goal

    def _on_connected(self) -> None:
        self._sense()

    def clear(self) -> None:
        self._goal = (self._truth.pan_rad, self._truth.tilt_rad)
        self._state = None

    def _on_step(self, now_ns: int) -> None:
        reach_rad = self._limits.max_speed_rad_s * ns_to_seconds(now_ns - self._stepped_ns)
        self._stepped_ns = now_ns
        if not self._script.active(StuckHead, now_ns):
            self._truth.pan_rad = _towards(self._truth.pan_rad, self._goal[0], reach_rad)
            self._truth.tilt_rad = _towards(self._truth.tilt_rad, self._goal[1], reach_rad)
        if self._arrived_ns is None and (self._truth.pan_rad, self._truth.tilt_rad) == self._goal:
            self._arrived_ns = now_ns
        if self._connected:
            self._sense()

    def _sense(self) -> None:
        now_ns = self._clock.now_ns()
        settled = self._arrived_ns is not None and now_ns - self._arrived_ns >= seconds_to_ns(self._limits.settle_s)
        self._state = HeadState(now_ns, self._truth.pan_rad, self._truth.tilt_rad, moving=not settled)


def _towards(present_rad: float, goal_rad: float, reach_rad: float) -> float:
    if abs(goal_rad - present_rad) <= reach_rad:
        return goal_rad
    return present_rad + math.copysign(reach_rad, goal_rad - present_rad)
