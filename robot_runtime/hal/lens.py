"""Lenses: from points in front of a sensor to its pixels and back, exactly.

Every model is one polynomial from ideal to distorted image coordinates; the way back is Newton's method on it, started
from the inverse of its radial part. (``cv2.undistortPoints`` with its default iterations is off by up to 3.9 pixels at
the edge of an Azure Kinect's depth sensor.)
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_runtime.common import config
from robot_runtime.hal.camera import Intrinsics

Model = Literal["pinhole", "brown_conrady", "inverse_brown_conrady", "rational"]
Array = NDArray[np.float64]

COEFFICIENTS: dict[Model, tuple[int, ...]] = {
    "pinhole": (0,),
    "brown_conrady": (4, 5),
    "inverse_brown_conrady": (4, 5),
    "rational": (8,),
}
"""Number of coefficients of each model."""

WIDEST_RADIUS = 8.0
"""Tangent of the angle off the axis up to which a distorted lens is followed: 83 degrees."""

CONVERGED = 1e-12
"""Largest remaining step, in ideal image coordinates; a nanometer at the focal plane of any camera."""

BEYOND = 1.02
"""Pixels this much further out than the edge are not tried: the tangential part moves none as far."""

MIN_FOCAL = 0.02
"""Smallest plausible focal length as a fraction of the image's size: 175 degrees. Below it, the unit is another one."""

MAX_NORMALIZED = 5.0
"""Largest focal length that may be a fraction of the image's size: 11 degrees."""

_NEWTON_STEPS = 30
_RADII = 4096


@dataclass(frozen=True)
class Lens(config.Strict):
    """One sensor's projection. Optical frame: x right, y down, z forward. Pixel (0, 0) is the top left one's center.

    Attributes:
        fx, fy, cx, cy: pixels.
        model: ``brown_conrady`` is OpenCV's plumb bob; ``rational`` OpenCV's eight-parameter model, as the Azure
            Kinect is calibrated with; ``inverse_brown_conrady`` librealsense's, whose tangential part is taken of
            the radially distorted point (``rsutil.h``).
        coefficients: distortion coefficients in OpenCV's order: k1, k2, p1, p2[, k3[, k4, k5, k6]].
        max_radius: tangent of the greatest angle off the axis that the lens sees; None where the image ends first.
            Where the polynomial turns back before that, the lens ends there.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    model: Model = "pinhole"
    coefficients: tuple[float, ...] = ()
    max_radius: float | None = None

    def __post_init__(self) -> None:
        if self.model not in get_args(Model):
            raise ValueError(f"lens model must be one of {', '.join(get_args(Model))}, got {self.model!r}")
        if len(self.coefficients) not in COEFFICIENTS[self.model]:
            counts = " or ".join(map(str, COEFFICIENTS[self.model]))
            raise ValueError(f"{self.model} takes {counts} coefficients, got {len(self.coefficients)}")
        if self.width < 1 or self.height < 1:
            raise ValueError(f"an image has pixels, got {self.width}x{self.height}")
        numbers = (self.fx, self.fy, self.cx, self.cy, *self.coefficients)
        if not all(map(math.isfinite, numbers)) or not self._limit > 0:
            raise ValueError(f"a lens has finite numbers and max_radius above 0, got {self}")
        for name, value, size in (("fx", self.fx, self.width), ("fy", self.fy, self.height)):
            if value < MIN_FOCAL * size:
                meant = (
                    f"; if it is a fraction of the image, write {value * size:.6g}"
                    if 0 < value <= MAX_NORMALIZED
                    else ""
                )
                raise ValueError(f"{name} must be in pixels, at least {MIN_FOCAL * size:g}, got {value}{meant}")
        for name, value, size in (("cx", self.cx, self.width), ("cy", self.cy, self.height)):
            if not -0.5 <= value <= size - 0.5:
                raise ValueError(f"{name} must be a pixel of the image, 0 to {size - 1}, got {value}")

    @classmethod
    def of(cls, pinhole: Intrinsics) -> Lens:
        """An ideal pinhole as a lens."""
        return cls(pinhole.width, pinhole.height, pinhole.fx, pinhole.fy, pinhole.cx, pinhole.cy)

    @property
    def matrix(self) -> Array:
        """OpenCV's camera matrix, float64 (3, 3)."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1]], np.float64)

    @functools.cached_property
    def edge_radius(self) -> float:
        """The greatest ideal radius that the lens maps one to one: ``max_radius``, or where its polynomial turns."""
        return self._limit if self.model == "pinhole" else float(self._radial_table[0][-1])

    def project(self, points: ArrayLike) -> Array:
        """Pixels of points.

        Args:
            points: (..., 3) in the optical frame, any unit.

        Returns:
            float64 (..., 2), x then y; NaN for what lies behind the sensor or beyond the lens's edge. Pixels outside
            the image are returned as they come out.
        """
        given = np.asarray(points, np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            ideal = given[..., :2] / np.where(given[..., 2:] > 0, given[..., 2:], np.nan)
            beyond = np.hypot(ideal[..., 0], ideal[..., 1]) > self.edge_radius
            distorted = np.where(beyond[..., None], np.nan, self._distort(ideal))
        return np.asarray(distorted * (self.fx, self.fy) + (self.cx, self.cy))

    def rays(self, pixels: ArrayLike) -> Array:
        """Directions in which pixels look: the inverse of :meth:`project` to better than 1e-6 pixels.

        Args:
            pixels: (..., 2), x then y; need neither be integers nor lie in the image.

        Returns:
            float64 (..., 3) with z = 1; NaN for pixels beyond the lens's edge.
        """
        given = np.asarray(pixels, np.float64)
        wanted = (given - (self.cx, self.cy)) / (self.fx, self.fy)
        ideal = wanted.copy() if self.model == "pinhole" else self._undistort(wanted)
        beyond = np.hypot(ideal[..., 0], ideal[..., 1]) > self.edge_radius * (1 + 1e-9)
        ideal[beyond] = np.nan
        return np.concatenate([ideal, np.ones((*ideal.shape[:-1], 1))], axis=-1)

    def holds(self, pixels: ArrayLike) -> NDArray[np.bool_]:
        """Mask of the pixels (..., 2) that lie in the image, its outermost half pixels included; NaN does not."""
        given = np.asarray(pixels, np.float64)
        x, y = given[..., 0], given[..., 1]
        return np.asarray((x >= -0.5) & (x <= self.width - 0.5) & (y >= -0.5) & (y <= self.height - 0.5))

    def pixel_rays(self) -> Array:
        """:meth:`rays` of every pixel, float64 (height, width, 3)."""
        x, y = np.meshgrid(np.arange(self.width), np.arange(self.height))
        return self.rays(np.stack([x, y], axis=-1))

    @property
    def _limit(self) -> float:
        return math.inf if self.max_radius is None else self.max_radius

    @property
    def _k(self) -> tuple[float, ...]:
        return (*self.coefficients, *(0.0,) * (8 - len(self.coefficients)))

    def _radial(self, r2: Array) -> tuple[Array, Array]:
        """The radial factor, and its derivative by the squared radius."""
        k1, k2, _, _, k3, k4, k5, k6 = self._k
        over, under = 1 + r2 * (k1 + r2 * (k2 + r2 * k3)), 1 + r2 * (k4 + r2 * (k5 + r2 * k6))
        d_over, d_under = k1 + r2 * (2 * k2 + r2 * 3 * k3), k4 + r2 * (2 * k5 + r2 * 3 * k6)
        return over / under, (d_over * under - over * d_under) / under**2

    def _distort(self, ideal: Array) -> Array:
        if self.model == "pinhole":
            return ideal
        _, _, p1, p2, *_ = self._k
        x, y = ideal[..., 0], ideal[..., 1]
        r2 = x * x + y * y
        factor, _ = self._radial(r2)
        far_x, far_y = x * factor, y * factor
        if self.model == "inverse_brown_conrady":
            x, y = far_x, far_y
        return np.stack(
            [far_x + 2 * p1 * x * y + p2 * (r2 + 2 * x * x), far_y + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y], axis=-1
        )

    def _jacobian(self, ideal: Array) -> tuple[Array, Array, Array, Array]:
        """Derivatives of distorted x, y by ideal x, y: xx, xy, yx, yy.

        The tangential part's own radial factor is left out: it costs librealsense's model another step, and no
        exactness.
        """
        _, _, p1, p2, *_ = self._k
        x, y = ideal[..., 0], ideal[..., 1]
        factor, slope = self._radial(x * x + y * y)
        xx = factor + 2 * x * x * slope + 2 * p1 * y + 6 * p2 * x
        xy = 2 * x * y * slope + 2 * p1 * x + 2 * p2 * y
        yy = factor + 2 * y * y * slope + 6 * p1 * y + 2 * p2 * x
        return xx, xy, xy, yy

    @functools.cached_property
    def _radial_table(self) -> tuple[Array, Array]:
        """(ideal, distorted) radii without the tangential part, as far as both increase."""
        ideal = np.linspace(0, min(self._limit, WIDEST_RADIUS), _RADII)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factor, slope = self._radial(ideal**2)
            turned = ~((factor + 2 * ideal**2 * slope > 0) & (factor > 0))
        end = int(np.argmax(turned)) if turned.any() else _RADII
        return ideal[:end], (ideal * factor)[:end]

    def _undistort(self, wanted: Array) -> Array:
        ideal_radii, distorted_radii = self._radial_table
        radius = np.hypot(wanted[..., 0], wanted[..., 1])
        start = np.interp(radius, distorted_radii, ideal_radii)
        points = wanted * np.divide(start, radius, out=np.ones_like(radius), where=radius > 0)[..., None]
        points[radius > distorted_radii[-1] * BEYOND] = np.nan
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for _ in range(_NEWTON_STEPS):
                error = self._distort(points) - wanted
                xx, xy, yx, yy = self._jacobian(points)
                determinant = xx * yy - xy * yx
                step = np.stack(
                    [
                        (yy * error[..., 0] - xy * error[..., 1]) / determinant,
                        (xx * error[..., 1] - yx * error[..., 0]) / determinant,
                    ],
                    axis=-1,
                )
                points = points - step
                if not (np.abs(step) > CONVERGED).any():
                    break
            # What has not converged lies beyond the edge, where there is no way back.
            points[~(np.abs(self._distort(points) - wanted).max(axis=-1) < 1e-9)] = np.nan
        return np.asarray(points)
