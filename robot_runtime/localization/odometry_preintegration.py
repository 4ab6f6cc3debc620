"""What odometry says of the way between any two instants, and how far to trust it.

Every small motion adds errors of its own: to the position, with a variance that grows with the way, and to the heading,
with one that grows with way and turning. An error of the heading at a point of the way moves everything after it. For
the covariance of the motion between two instants that is a sum over the way between them; written out, the sums
separate into moments of the way itself, so that differences of running totals give the covariance of any stretch at the
cost of two look-ups. That is what makes it cheap to fold late measurements in again. (Preintegration does the same for
inertial sensors: Forster et al. 2017, "On-Manifold Preintegration for Real-Time Visual-Inertial Odometry".)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from robot_runtime.common import config
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2

OdometrySample = tuple[float, float, float, float, float, float, float, float, float, float]
"""Odometry at an instant: x, y, yaw (not wrapped), then running totals along the way, with the heading's variance q as
weight: q, q x, q y, q xx, q xy, q yy; and the position's variance."""

Motion = tuple[float, float, float, float, float, float, float, float, float]
"""Between two waypoints, in odom's axes: dx, dy, dyaw, and the variances xx, xy, x yaw, yy, y yaw, yaw yaw."""


@dataclass(frozen=True)
class OdometryNoise:
    """Standard deviations of what odometry measures; variances add up along the way.

    The defaults are a Kobuki's with its gyro on hard floor, with room for a scale that is off by a percent or two.

    Attributes:
        position_m: after 1 m of way, in each direction.
        heading_deg: after 1 m of way. turn_deg: of a heading after one full turn.
    """

    position_m: float = 0.02
    heading_deg: float = 0.8
    turn_deg: float = 2.5

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, got {value}")


class PreintegratedOdometry:
    """Odometry's recent past.

    Args:
        span_s: how far back from the newest sample it reaches.
    """

    def __init__(self, noise: OdometryNoise, span_s: float) -> None:
        self._position_var = noise.position_m**2
        self._heading_var = math.radians(noise.heading_deg) ** 2
        self._turn_var = math.radians(noise.turn_deg) ** 2 / (2 * math.pi)
        self._span_ns = seconds_to_ns(span_s)
        self._stamps_ns: list[int] = []
        self._waypoints: list[OdometrySample] = []

    def clear(self) -> None:
        """Forget everything."""
        self._stamps_ns.clear()
        self._waypoints.clear()

    @property
    def oldest_ns(self) -> int | None:
        """Stamp of the first sample kept; None if there is none."""
        return self._stamps_ns[0] if self._stamps_ns else None

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the last sample; None if there is none."""
        return self._stamps_ns[-1] if self._stamps_ns else None

    def add(self, stamp_ns: int, pose: SE2) -> bool:
        """Take in a sample; False, and nothing happens, if it is not newer than all before."""
        if not self._stamps_ns:
            self._stamps_ns.append(stamp_ns)
            self._waypoints.append((pose.x_m, pose.y_m, pose.yaw_rad, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            return True
        if stamp_ns <= self._stamps_ns[-1]:
            return False
        x0, y0, yaw0, q, qx, qy, qxx, qxy, qyy, var = self._waypoints[-1]
        x, y = pose.x_m, pose.y_m
        turn = math.remainder(pose.yaw_rad - yaw0, 2 * math.pi)
        way = math.hypot(x - x0, y - y0)
        dq = self._heading_var * way + self._turn_var * abs(turn)
        mx, my = 0.5 * (x0 + x), 0.5 * (y0 + y)
        self._stamps_ns.append(stamp_ns)
        self._waypoints.append(
            (
                x,
                y,
                yaw0 + turn,
                q + dq,
                qx + dq * mx,
                qy + dq * my,
                qxx + dq * mx * mx,
                qxy + dq * mx * my,
                qyy + dq * my * my,
                var + self._position_var * way,
            )
        )
        half = len(self._stamps_ns) // 2  # half of it at once, so that a sample costs the same however much is kept
        if self._stamps_ns[half] < stamp_ns - self._span_ns:
            del self._stamps_ns[:half], self._waypoints[:half]
        return True

    def at(self, stamp_ns: int) -> OdometrySample | None:
        """The waypoint at an instant, interpolated; None outside what is kept."""
        stamps_ns = self._stamps_ns
        if not stamps_ns or stamp_ns > stamps_ns[-1] or stamp_ns < stamps_ns[0]:
            return None
        index = bisect_left(stamps_ns, stamp_ns)
        after = self._waypoints[index]
        if stamps_ns[index] == stamp_ns:
            return after
        before = self._waypoints[index - 1]
        f = (stamp_ns - stamps_ns[index - 1]) / (stamps_ns[index] - stamps_ns[index - 1])
        a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 = before
        b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 = after
        return (
            a0 + f * (b0 - a0),
            a1 + f * (b1 - a1),
            a2 + f * (b2 - a2),
            a3 + f * (b3 - a3),
            a4 + f * (b4 - a4),
            a5 + f * (b5 - a5),
            a6 + f * (b6 - a6),
            a7 + f * (b7 - a7),
            a8 + f * (b8 - a8),
            a9 + f * (b9 - a9),
        )


def motion(a: OdometrySample, b: OdometrySample) -> Motion:
    """From waypoint ``a`` to ``b``; ``a`` need not be the earlier one in place, but in time."""
    x, y = b[0], b[1]
    q, qx, qy = b[3] - a[3], b[4] - a[4], b[5] - a[5]
    qxx, qxy, qyy = b[6] - a[6], b[7] - a[7], b[8] - a[8]
    var = b[9] - a[9]
    # An error e of the heading at the point p of the way moves the end by e J (end - p), J the quarter turn.
    return (
        x - a[0],
        y - a[1],
        b[2] - a[2],
        y * (y * q - 2 * qy) + qyy + var,
        -(x * y * q - x * qy - y * qx + qxy),
        qy - y * q,
        x * (x * q - 2 * qx) + qxx + var,
        x * q - qx,
        q,
    )
