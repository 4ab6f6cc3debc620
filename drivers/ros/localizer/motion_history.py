"""The robot's recent motion by odometry and servos, for the detection of frozen cameras."""

import math
import threading
from collections import deque

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import StaleData
from robot_runtime.hal import PoseEstimate
from robot_runtime.hal.pose_history import PoseHistory

SPAN_S = 60.0
MOVED_M = 0.03
MOVED_RAD = math.radians(3)
"""Thresholds beyond odometry's noise, and large enough to change any image."""


class MotionHistory:
    """Odometry and head angles by stamp. Thread-safe."""

    def __init__(self) -> None:
        self._odom = PoseHistory("odometry", "odom", span_s=SPAN_S)
        self._lock = threading.Lock()
        self._head: deque[tuple[int, float, float]] = deque()
        self._since_ns = 0

    def odom(self, stamp_ns: int, pose: SE2) -> None:
        """Add a pose of the base in odom."""
        if stamp_ns < self._since_ns:
            return
        self._odom.add(PoseEstimate(stamp_ns, pose, "odom"))

    def head(self, stamp_ns: int, pan_rad: float, tilt_rad: float) -> None:
        """Add angles of the head."""
        if stamp_ns < self._since_ns:
            return
        with self._lock:
            self._head.append((stamp_ns, pan_rad, tilt_rad))
            while self._head[0][0] < stamp_ns - seconds_to_ns(SPAN_S):
                self._head.popleft()

    def clear(self, since_ns: int = 0) -> None:
        """Discard everything, as the robot was placed elsewhere or time has a new origin.

        Args:
            since_ns: Later measurements with an earlier stamp are ignored.
        """
        self._since_ns = since_ns
        self._odom.clear()
        with self._lock:
            self._head.clear()

    def pose_at(self, stamp_ns: int) -> SE2 | None:
        """Return odometry at an instant; None if it is not known (yet)."""
        try:
            estimate = self._odom.at(stamp_ns)
        except StaleData:
            return None
        return estimate.pose if estimate is not None else None

    def moved(self, since_ns: int, until_ns: int) -> bool:
        """Whether base or head certainly moved between two instants; False where that is not known."""
        newest = self._odom.newest()
        before, after = self.pose_at(since_ns), self.pose_at(until_ns)
        if after is None and newest is not None and since_ns < newest.stamp_ns < until_ns:
            after = newest.pose  # images may arrive a message earlier than odometry
        if before is not None and after is not None:
            turned_rad = abs(wrap_angle(after.yaw_rad - before.yaw_rad))
            if before.distance_to(after) > MOVED_M or turned_rad > MOVED_RAD:
                return True
        with self._lock:
            samples = [sample for sample in self._head if since_ns <= sample[0] <= until_ns]
        return len(samples) > 1 and any(abs(samples[-1][i] - samples[0][i]) > MOVED_RAD for i in (1, 2))
