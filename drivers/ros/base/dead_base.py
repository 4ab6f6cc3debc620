"""Detection of a base that obeys no command: it is commanded, does not move, and reports nothing that stops it.

A Create 3 stops obeying velocities after a long uptime while its topics go on (create3_docs issue 623); a motor driver
without power does the same.
"""

import math

from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Velocity

LEAST_M_S, LEAST_RAD_S = 0.05, 0.3
"""Commands below these move no wheel of some bases."""

MOVED_M, MOVED_RAD = 0.002, math.radians(0.5)
"""Motion that odometry shows of any turning wheel: several counts of its encoders."""

PATIENCE_S = 0.9
"""Time without motion: the slowest documented motors begin to move after 0.5 s and need 0.2 s more to show it."""


class DeadBase(DeviceFault):
    """The base does not move although it is commanded to, and nothing stops it."""


class MotionWatch:
    """Compares commands with odometry. Not thread-safe: call it under the lock of the Guard."""

    def __init__(self) -> None:
        self._since_ns: int | None = None
        self._pose: SE2 | None = None
        self._reference: SE2 | None = None

    def command(self, velocity: Velocity, now_ns: int) -> None:
        """Take a velocity that was sent to the wheels."""
        if abs(velocity.linear_m_s) < LEAST_M_S and abs(velocity.angular_rad_s) < LEAST_RAD_S:
            self._since_ns = None
        elif self._since_ns is None:
            self._since_ns, self._reference = now_ns, self._pose

    def odometry(self, pose: SE2, now_ns: int) -> None:
        """Take a pose of the base's odometry.

        Raises:
            DeadBase: The commands have moved nothing for ``PATIENCE_S``.
        """
        self._pose = pose
        if self._since_ns is None:
            return
        before = self._reference or pose
        turned_rad = abs(wrap_angle(pose.yaw_rad - before.yaw_rad))
        if self._reference is None or before.distance_to(pose) > MOVED_M or turned_rad > MOVED_RAD:
            self._since_ns, self._reference = now_ns, pose
        elif (still_s := ns_to_seconds(now_ns - self._since_ns)) > PATIENCE_S:
            raise DeadBase(
                f"base: it has been commanded for {still_s:.1f} s and does not move, and it reports no hazard",
                "a Create 3: restart its application in its web page, or switch it off and on; any base: is another "
                "goal or a reflex active, are its motors on, does its driver hear the velocity's topic and type?",
            )

    def clear(self) -> None:
        """Forget everything: another connection or place."""
        self._since_ns = self._pose = self._reference = None
