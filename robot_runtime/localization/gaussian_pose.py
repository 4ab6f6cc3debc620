"""Pose in the map with its covariance: prediction by odometry and update by a measurement, in plain floats.

Sources: Thrun, Burgard, Fox 2005, "Probabilistic Robotics", 3.3 (the filter); Bierman 1977, "Factorization Methods for
Discrete Sequential Estimation" (sequential scalar updates of a whitened measurement: no matrix is inverted, and the
covariance stays symmetric).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.localization.odometry_preintegration import OdometrySample, motion

Belief = tuple[float, float, float, float, float, float, float, float, float]
"""x, y, yaw (not wrapped), and the covariances xx, xy, x yaw, yy, y yaw, yaw yaw; meters and radians."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured position or pose in the map.

    Attributes:
        stamp_ns: time of the measurement.
        x_m: x of the measured point.
        y_m: y of the measured point.
        yaw_rad: heading of the robot; unused with two dimensions.
        whitening: lower triangle W, row by row, with W R Wᵀ = 1 for the covariance R: 3 or 6 numbers.
        lever_m: the measured point in base_link.
    """

    stamp_ns: int
    x_m: float
    y_m: float
    yaw_rad: float
    whitening: tuple[float, ...]
    lever_m: tuple[float, float] = (0.0, 0.0)

    @property
    def dimensions(self) -> int:
        """3, or 2 for a position without heading."""
        return 2 if len(self.whitening) == 3 else 3

    @property
    def std_m(self) -> float:
        """Standard deviation of a coordinate, root mean square over both."""
        w00, w10, w11 = self.whitening[:3]
        a, b = 1 / w00, -w10 / (w00 * w11)
        return math.sqrt((a * a + b * b + 1 / (w11 * w11)) / 2)

    @property
    def std_rad(self) -> float:
        """Standard deviation of the heading without its correlations; infinite if it is not measured."""
        return 1 / self.whitening[5] if len(self.whitening) == 6 else math.inf


def whitening(covariance: NDArray[np.float64], floor_m: float, floor_rad: float) -> tuple[float, ...]:
    """``Measurement.whitening`` of a covariance, with the variances of independent position and heading errors added.

    Args:
        covariance: float64 (3, 3); an infinite variance of the yaw makes it a measurement of the position only.
        floor_m: standard deviation to add to each coordinate.
        floor_rad: standard deviation to add to the yaw.

    Raises:
        ValueError: not finite, or not positive definite even with the added variances.
    """
    (r00, _, _), (r10, r11, _), (r20, r21, r22) = covariance.tolist()
    r00, r11, r22 = r00 + floor_m**2, r11 + floor_m**2, r22 + floor_rad**2
    try:
        l00 = math.sqrt(r00)
        l10 = r10 / l00
        l11 = math.sqrt(r11 - l10 * l10)
        i00, i11 = 1 / l00, 1 / l11
        i10 = -l10 * i00 * i11
        if math.isinf(r22):
            result: tuple[float, ...] = (i00, i10, i11)
        else:
            l20 = r20 / l00
            l21 = (r21 - l20 * l10) / l11
            i22 = 1 / math.sqrt(r22 - l20 * l20 - l21 * l21)
            result = (i00, i10, i11, -(l20 * i00 + l21 * i10) * i22, -l21 * i11 * i22, i22)
    except (ValueError, ZeroDivisionError):
        result = (math.nan,)
    if not all(map(math.isfinite, result)):
        raise ValueError(f"{covariance.tolist()} is not the covariance of a pose")
    return result


def predict(belief: Belief, a: OdometrySample, b: OdometrySample) -> Belief:
    """The belief at odometry sample ``b``, from the belief at ``a``."""
    x, y, yaw, xx, xy, xt, yy, yt, tt = belief
    dx, dy, turn, qxx, qxy, qxt, qyy, qyt, qtt = motion(a, b)
    # Rotation from odom to map according to the belief.
    c, s = math.cos(yaw - a[2]), math.sin(yaw - a[2])
    u, v = c * dx - s * dy, s * dx + c * dy
    # An error of the heading at the start moves the end by J (u, v).
    xx, xy, yy = (
        xx - 2 * v * xt + v * v * tt + c * c * qxx - 2 * c * s * qxy + s * s * qyy,
        xy + u * xt - v * yt - u * v * tt + c * s * (qxx - qyy) + (c * c - s * s) * qxy,
        yy + 2 * u * yt + u * u * tt + s * s * qxx + 2 * c * s * qxy + c * c * qyy,
    )
    xt, yt = xt - v * tt + c * qxt - s * qyt, yt + u * tt + s * qxt + c * qyt
    return (x + u, y + v, yaw + turn, xx, xy, xt, yy, yt, tt + qtt)


def update(belief: Belief, measurement: Measurement) -> tuple[float, Belief]:
    """The squared Mahalanobis distance of a measurement's innovation, and the belief after the measurement."""
    x, y, yaw, xx, xy, xt, yy, yt, tt = belief
    lx, ly = measurement.lever_m
    c, s = math.cos(yaw), math.sin(yaw)
    ax, ay = c * lx - s * ly, s * lx + c * ly
    ex, ey = measurement.x_m - x - ax, measurement.y_m - y - ay
    w = measurement.whitening
    w00, w10, w11 = w[0], w[1], w[2]
    # Rows of W H and of W e, with the measurement's Jacobian H = (1, 0, -ay; 0, 1, ax; 0, 0, 1).
    rows = [(w00, 0.0, -w00 * ay, w00 * ex), (w10, w11, w11 * ax - w10 * ay, w10 * ex + w11 * ey)]
    if len(w) == 6:
        et = math.remainder(measurement.yaw_rad - yaw, 2 * math.pi)
        w20, w21, w22 = w[3], w[4], w[5]
        rows.append((w20, w21, w21 * ax - w20 * ay + w22, w20 * ex + w21 * ey + w22 * et))
    distance = dx = dy = dt = 0.0
    for hx, hy, ht, e in rows:
        px, py, pt = xx * hx + xy * hy + xt * ht, xy * hx + yy * hy + yt * ht, xt * hx + yt * hy + tt * ht
        variance = hx * px + hy * py + ht * pt + 1.0
        innovation = e - hx * dx - hy * dy - ht * dt
        gain = innovation / variance
        distance += innovation * gain
        dx, dy, dt = dx + px * gain, dy + py * gain, dt + pt * gain
        xx, xy, xt = xx - px * px / variance, xy - px * py / variance, xt - px * pt / variance
        yy, yt, tt = yy - py * py / variance, yt - py * pt / variance, tt - pt * pt / variance
    return distance, (x + dx, y + dy, yaw + dt, xx, xy, xt, yy, yt, tt)


def covariance_of(belief: Belief) -> NDArray[np.float64]:
    """The covariance of a belief, float64 (3, 3)."""
    _, _, _, xx, xy, xt, yy, yt, tt = belief
    return np.array(((xx, xy, xt), (xy, yy, yt), (xt, yt, tt)))
