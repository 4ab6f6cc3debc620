"""Ray-cast room of planes, a box and a ball: exact images of any lens, the reference for reprojection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.rig import RgbdCalibration

Floats = NDArray[np.float64]
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Room:
    """A room in the optical frame of the camera in it: x right, y down, z forward, meters.

    Attributes:
        corner: corner of the room.
        opposite: the opposite corner.
        box: corner of a box, axis-aligned as the room.
        box_opposite: the opposite corner.
        ball: center of a sphere.
        radius_m: radius of the sphere.
    """

    corner: Point = (-2.4, -1.6, -1.0)
    opposite: Point = (2.6, 0.9, 4.4)
    box: Point = (-1.3, -0.1, 1.6)
    box_opposite: Point = (-0.6, 0.9, 2.0)
    ball: Point = (0.45, 0.2, 2.1)
    radius_m: float = 0.5

    @classmethod
    def random(cls, seed: int) -> Room:
        """A room whose walls, box and ball are moved by up to 30 cm."""
        moved = np.random.default_rng(seed).uniform(-0.3, 0.3, (4, 3))
        base = cls()
        shift = moved.tolist()
        return cls(
            _plus(base.corner, shift[0]),
            _plus(base.opposite, shift[1]),
            _plus(base.box, shift[2]),
            _plus(base.box_opposite, shift[2]),
            _plus(base.ball, shift[3]),
        )

    def cast(self, origin: Floats, directions: Floats) -> Floats:
        """Length of each ray as a multiple of its direction, which is depth for directions with z = 1.

        Args:
            origin: (3,).
            directions: (..., 3); NaN gives NaN.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.maximum(
                (np.array(self.corner) - origin) / directions, (np.array(self.opposite) - origin) / directions
            )
            first, last = (
                (np.array(self.box) - origin) / directions,
                (np.array(self.box_opposite) - origin) / directions,
            )
            enter, leave = np.minimum(first, last).max(axis=-1), np.maximum(first, last).min(axis=-1)
            box = np.where((enter < leave) & (enter > 0), enter, np.inf)
            square, along = (directions**2).sum(axis=-1), directions @ (np.array(self.ball) - origin)
            beside = along**2 - square * (((np.array(self.ball) - origin) ** 2).sum() - self.radius_m**2)
            ball = np.where((beside > 0) & (along > 0), (along - np.sqrt(np.maximum(beside, 0))) / square, np.inf)
        return np.asarray(np.minimum(np.minimum(room.min(axis=-1), box), ball))

    def paint(self, points: Floats) -> NDArray[np.uint8]:
        """Color of points on surfaces (..., 3): smooth waves, so that an error of one pixel is measurable."""
        with np.errstate(invalid="ignore"):
            waves = np.sin(np.nan_to_num(points) * (7.0, 9.0, 8.0))
            return np.asarray(127.5 + 100 * waves, np.uint8)


def _plus(point: Point, shift: Sequence[float]) -> Point:
    return point[0] + shift[0], point[1] + shift[1], point[2] + shift[2]


def depth_counts(room: Room, calibration: RgbdCalibration, near_m: float, far_m: float) -> NDArray[np.uint16]:
    """Depth image of a calibration's sensor without noise: whole counts, 0 outside of its range."""
    turn, origin = calibration.color_from_depth[:3, :3], calibration.color_from_depth[:3, 3]
    depth_m = room.cast(origin, calibration.depth.pixel_rays() @ turn.T)
    seen = np.isfinite(depth_m) & (depth_m >= near_m) & (depth_m <= far_m)
    counts = np.rint((np.nan_to_num(depth_m) - calibration.depth_bias_m) / calibration.depth_unit_m)
    return np.where(seen, counts, 0).astype(np.uint16)


def color_image(room: Room, lens: Lens, turn: Floats | None = None) -> NDArray[np.uint8]:
    """Color image of a sensor at the origin, with directions rotated by (3, 3); black where the lens has no ray."""
    rays = lens.pixel_rays() @ (np.eye(3) if turn is None else turn).T
    image = room.paint(rays * room.cast(np.zeros(3), rays)[..., None])
    image[np.isnan(rays[..., 0])] = 0
    return image


def time_of_flight_rig() -> RgbdCalibration:
    """A calibration like an Azure Kinect's at 720p with its narrow unbinned depth, not of a particular device."""
    tilt = math.radians(5.0)
    color_from_depth = np.eye(4)
    color_from_depth[1:3, 1:3] = [[math.cos(tilt), math.sin(tilt)], [-math.sin(tilt), math.cos(tilt)]]
    color_from_depth[:3, 3] = (-0.032, -0.0021, 0.0038)
    color = (0.35, -2.5, -0.00015, -0.00012, 1.46, 0.23, -2.31, 1.38)
    depth = (0.55, -0.02, 0.00002, -0.00007, -0.003, 0.89, 0.086, -0.014)
    return RgbdCalibration(
        Lens(1280, 720, 610.5, 610.3, 638.7, 365.9, "rational", color, 1.7),
        Lens(640, 576, 504.3, 504.4, 322.4, 335.1, "rational", depth, 1.74),
        color_from_depth,
        0.001,
        "analytic",
        "simulation",
    )
