"""Preintegrated odometry: the motion between any two instants and its covariance, in constant time.

Every small motion adds a position error whose variance grows with the path length, and a heading error whose variance
grows with path length and turning. A heading error moves everything after it. The covariance of the motion between two
instants is a sum over the path in between. It separates into moments of the path: differences of running totals give
the covariance of any interval at the cost of two look-ups. (Preintegration does the same for inertial sensors: Forster
et al. 2017, "On-Manifold Preintegration for Real-Time Visual-Inertial Odometry".)
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

from robot_runtime.common import config
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import Spread

OdometrySample = tuple[float, float, float, float, float, float, float, float, float, float]
"""Odometry at an instant: x, y, yaw (not wrapped), then running totals over the path, weighted with the variance q of
the heading: q, q x, q y, q xx, q xy, q yy; and the variance of the position.
"""

Motion = tuple[float, float, float, float, float, float, float, float, float]
"""Motion between two samples, in odom's axes: dx, dy, dyaw, and the covariances xx, xy, x yaw, yy, y yaw, yaw yaw."""


@dataclass(frozen=True)
class OdometryNoise(config.Strict):
    """Standard deviations of odometry; variances grow linearly with path length and turning.

    The defaults are a Kobuki's with its gyro on hard floor, with room for a scale that is off by a percent or two.

    Attributes:
        position_m: standard deviation of the position after a path of 1 m, in each direction.
        heading_deg: standard deviation of the heading after a path of 1 m.
        turn_deg: standard deviation of the heading after one full turn.
    """

    position_m: Spread = 0.02
    heading_deg: float = 0.8
    turn_deg: float = 2.5

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, got {value}")


class PreintegratedOdometry:
    """Recent odometry.

    Args:
        noise: noise of odometry.
        span_s: age of the oldest sample that is kept.
    """

    def __init__(self, noise: OdometryNoise, span_s: float) -> None:
        self._position_var = noise.position_m**2
        self._heading_var = math.radians(noise.heading_deg) ** 2
        self._turn_var = math.radians(noise.turn_deg) ** 2 / (2 * math.pi)
        self._span_ns = seconds_to_ns(span_s)
        self._stamps_ns: list[int] = []
        self._samples: list[OdometrySample] = []

    def clear(self) -> None:
        """Remove all samples."""
        self._stamps_ns.clear()
        self._samples.clear()

    @property
    def oldest_ns(self) -> int | None:
        """Stamp of the first sample; None if there is none."""
        return self._stamps_ns[0] if self._stamps_ns else None

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the last sample; None if there is none."""
        return self._stamps_ns[-1] if self._stamps_ns else None

    def add(self, stamp_ns: int, pose: SE2) -> bool:
        """Add a pose. Returns False, without any effect, if it is not newer than all before."""
        if not self._stamps_ns:
            self._stamps_ns.append(stamp_ns)
            self._samples.append((pose.x_m, pose.y_m, pose.yaw_rad, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            return True
        if stamp_ns <= self._stamps_ns[-1]:
            return False
        x0, y0, yaw0, q, qx, qy, qxx, qxy, qyy, var = self._samples[-1]
        x, y = pose.x_m, pose.y_m
        turn = math.remainder(pose.yaw_rad - yaw0, 2 * math.pi)
        length_m = math.hypot(x - x0, y - y0)
        dq = self._heading_var * length_m + self._turn_var * abs(turn)
        mx, my = 0.5 * (x0 + x), 0.5 * (y0 + y)
        first = (q + dq, qx + dq * mx, qy + dq * my)
        second = (qxx + dq * mx * mx, qxy + dq * mx * my, qyy + dq * my * my)
        self._stamps_ns.append(stamp_ns)
        self._samples.append((x, y, yaw0 + turn, *first, *second, var + self._position_var * length_m))
        half = len(self._stamps_ns) // 2  # Removing half at once keeps the cost per sample constant.
        if self._stamps_ns[half] < stamp_ns - self._span_ns:
            del self._stamps_ns[:half], self._samples[:half]
        return True

    def at(self, stamp_ns: int) -> OdometrySample | None:
        """The sample at an instant, interpolated; None outside the interval that is kept."""
        stamps_ns = self._stamps_ns
        if not stamps_ns or stamp_ns > stamps_ns[-1] or stamp_ns < stamps_ns[0]:
            return None
        index = bisect_left(stamps_ns, stamp_ns)
        after = self._samples[index]
        if stamps_ns[index] == stamp_ns:
            return after
        before = self._samples[index - 1]
        f = (stamp_ns - stamps_ns[index - 1]) / (stamps_ns[index] - stamps_ns[index - 1])
        return tuple([a + f * (b - a) for a, b in zip(before, after, strict=True)])  # type: ignore[return-value]


def motion(a: OdometrySample, b: OdometrySample) -> Motion:
    """The motion from sample ``a`` to the later sample ``b``."""
    x, y = b[0], b[1]
    q, qx, qy = b[3] - a[3], b[4] - a[4], b[5] - a[5]
    qxx, qxy, qyy = b[6] - a[6], b[7] - a[7], b[8] - a[8]
    var = b[9] - a[9]
    # A heading error e at a point p of the path moves the end by e J (end - p), J the quarter turn.
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
