"""Planar and spatial poses, and the one table of frames.

=========  ==========================================================================================
frame      convention
=========  ==========================================================================================
ROS        right-handed, x forward, y left, z up; yaw counter-clockwise positive. Used inside this project,
           in scenes, maps and logs. ``map`` is the scene's frame, ``odom`` the wheel odometry's, ``base_link``
           the robot's.
Habitat    right-handed, y up, agent looks along -z; +yaw about +y turns left; quaternions x, y, z, w.
THOR       left-handed, y up; ``rotation.y`` in degrees clockwise from +z; ``horizon`` positive looks down.
episode    the start pose is the origin. GPS = [forward, right]; compass counter-clockwise positive;
           point goal polar = [rho, azimuth], azimuth counter-clockwise positive.
=========  ==========================================================================================

Sources: habitat-lab ``tasks/nav/nav.py`` (point goal 160-192, compass 374, GPS 399-451) and ai2thor; worked numbers
are in ``tests/robot_runtime/common/test_geometry.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_TURN_RAD = 2 * math.pi


def wrap_angle(angle_rad: float) -> float:
    """The same angle in (-pi, pi]."""
    wrapped = math.remainder(angle_rad, _TURN_RAD)
    return math.pi if wrapped == -math.pi else wrapped


def arc_end(forward_m: float, turn_rad: float) -> tuple[float, float]:
    """Position at the end of a circular arc of this length and turn, in the starting frame."""
    half_rad = turn_rad / 2
    if not half_rad:
        return forward_m, forward_m * 0.0
    chord_m = forward_m * (math.sin(half_rad) / half_rad)
    return chord_m * math.cos(half_rad), chord_m * math.sin(half_rad)


@dataclass(frozen=True, slots=True)
class SE2:
    """A planar pose, or the transform that takes the pose's frame to its parent.

    Attributes:
        x_m, y_m: position in the parent frame.
        yaw_rad: heading, counter-clockwise positive, not wrapped.
    """

    x_m: float = 0.0
    y_m: float = 0.0
    yaw_rad: float = 0.0

    def __matmul__(self, other: SE2) -> SE2:
        """``a @ b``: the pose ``b``, given in frame ``a``, in ``a``'s parent. The yaw is wrapped."""
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        return SE2(
            self.x_m + c * other.x_m - s * other.y_m,
            self.y_m + s * other.x_m + c * other.y_m,
            wrap_angle(self.yaw_rad + other.yaw_rad),
        )

    @classmethod
    def arc(cls, forward_m: float, turn_rad: float) -> SE2:
        """Displacement along a circular arc of this length and turn, in the starting frame."""
        x_m, y_m = arc_end(forward_m, turn_rad)
        return cls(x_m, y_m, turn_rad)

    def after_arc(self, forward_m: float, turn_rad: float) -> SE2:
        """``self @ SE2.arc(forward_m, turn_rad)``, in half of its time."""
        half_rad = turn_rad / 2
        chord_m = forward_m * (math.sin(half_rad) / half_rad if half_rad else 1.0)
        heading_rad = self.yaw_rad + half_rad
        return SE2(
            self.x_m + chord_m * math.cos(heading_rad),
            self.y_m + chord_m * math.sin(heading_rad),
            wrap_angle(self.yaw_rad + turn_rad),
        )

    def inverse(self) -> SE2:
        """The transform back."""
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        return SE2(-c * self.x_m - s * self.y_m, s * self.x_m - c * self.y_m, wrap_angle(-self.yaw_rad))

    def relative_to(self, origin: SE2) -> SE2:
        """This pose seen from ``origin`` (both in one frame)."""
        return origin.inverse() @ self

    def apply(self, x_m: float, y_m: float) -> tuple[float, float]:
        """A point of this frame in the parent frame."""
        moved = self @ SE2(x_m, y_m, 0.0)
        return moved.x_m, moved.y_m

    def distance_to(self, other: SE2) -> float:
        """Planar distance in meters."""
        return math.hypot(self.x_m - other.x_m, self.y_m - other.y_m)

    def interpolate(self, other: SE2, fraction: float) -> SE2:
        """The pose at ``fraction`` in [0, 1] of the way; yaw takes the shorter way round."""
        return SE2(
            self.x_m + fraction * (other.x_m - self.x_m),
            self.y_m + fraction * (other.y_m - self.y_m),
            wrap_angle(self.yaw_rad + fraction * wrap_angle(other.yaw_rad - self.yaw_rad)),
        )


# --- ROS <-> Habitat ------------------------------------------------------------------------------------------------


def ros_to_habitat_position(x_m: float, y_m: float, z_m: float) -> tuple[float, float, float]:
    """A point of the ROS frame in Habitat's: (-y, z, -x)."""
    return -y_m, z_m, -x_m


def habitat_to_ros_position(x_m: float, y_m: float, z_m: float) -> tuple[float, float, float]:
    """A point of Habitat's frame in the ROS frame: (-z, -x, y)."""
    return -z_m, -x_m, y_m


def yaw_to_habitat_quaternion(yaw_rad: float) -> tuple[float, float, float, float]:
    """A heading as Habitat's agent rotation, in JSON order x, y, z, w."""
    return 0.0, math.sin(yaw_rad / 2), 0.0, math.cos(yaw_rad / 2)


def habitat_quaternion_to_yaw(x: float, y: float, z: float, w: float) -> float:
    """Heading of an agent rotation given as x, y, z, w (need not be normalized).

    Raises:
        ValueError: for the zero quaternion or one that is not finite.
    """
    norm_squared = x * x + y * y + z * z + w * w
    if not (math.isfinite(norm_squared) and norm_squared > 0):
        raise ValueError(f"not a rotation: [{x}, {y}, {z}, {w}]")
    return math.atan2(2 * (w * y + x * z), w * w + z * z - x * x - y * y)


# --- ROS <-> THOR ---------------------------------------------------------------------------------------------------


def ros_to_thor_position(x_m: float, y_m: float, z_m: float) -> tuple[float, float, float]:
    """A point of the ROS frame in THOR's left-handed frame: (-y, z, x)."""
    return -y_m, z_m, x_m


def thor_to_ros_position(x_m: float, y_m: float, z_m: float) -> tuple[float, float, float]:
    """A point of THOR's frame in the ROS frame: (z, -x, y)."""
    return z_m, -x_m, y_m


def yaw_to_thor_rotation_deg(yaw_rad: float) -> float:
    """A heading as THOR's ``rotation.y`` in [0, 360) degrees, clockwise positive."""
    # Twice, because the remainder of a tiny negative angle rounds up to 360 itself.
    return (-math.degrees(yaw_rad)) % 360.0 % 360.0


def thor_rotation_to_yaw(rotation_deg: float) -> float:
    """THOR's ``rotation.y`` as a heading in radians."""
    return wrap_angle(-math.radians(rotation_deg))


def thor_horizon_to_tilt(horizon_deg: float) -> float:
    """THOR's ``horizon`` (degrees, down positive, 330 = 30 up) as camera tilt (radians, up positive)."""
    return wrap_angle(-math.radians(horizon_deg))


def tilt_to_thor_horizon_deg(tilt_rad: float) -> float:
    """Camera tilt (radians, up positive) as THOR's ``horizon`` in (-180, 180] degrees, down positive."""
    return -math.degrees(wrap_angle(tilt_rad))


# --- episode frame --------------------------------------------------------------------------------------------------


def gps(start: SE2, pose: SE2, dimensions: int = 2) -> Vector:
    """Habitat's GPS: ``pose`` in the start frame, meters, float64.

    Args:
        start: pose of the start frame.
        pose: pose in the same frame as ``start``.
        dimensions: its ``DIMENSIONALITY``. 2: [forward, right]. 3: [right, up, backward], the start frame in Habitat's
            own axes; up is 0, because the robot stays on its floor.
    """
    local = pose.relative_to(start)
    return np.array([local.x_m, -local.y_m] if dimensions == 2 else [-local.y_m, 0.0, -local.x_m])


def gps_to_start_frame(gps_m: Vector) -> tuple[float, float]:
    """Forward and left in the start frame, meters, of a GPS of 2 or 3 dimensions: the way back from :func:`gps`."""
    if len(gps_m) == 2:
        return float(gps_m[0]), -float(gps_m[1])
    return -float(gps_m[2]), -float(gps_m[0])


def compass(start: SE2, pose: SE2) -> float:
    """Habitat's compass: heading relative to the start heading, counter-clockwise positive, in (-pi, pi]."""
    return wrap_angle(pose.yaw_rad - start.yaw_rad)


def polar_goal(pose: SE2, goal_x_m: float, goal_y_m: float) -> Vector:
    """Habitat's polar point goal seen from ``pose``: [rho, azimuth], left positive, float64 of shape (2,).

    At the goal itself Habitat's formula gives azimuth -pi (``-atan2(0, -0)``); this one gives 0.
    """
    local = pose.inverse() @ SE2(goal_x_m, goal_y_m, 0.0)
    return np.array([math.hypot(local.x_m, local.y_m), math.atan2(local.y_m, local.x_m)])


def point_goal(shown: Vector, form: str) -> tuple[float, float]:
    """Forward and left to a point goal, meters, from where it is seen, of Habitat's form ``polar`` or ``cartesian``.

    Args:
        shown: [rho, azimuth] or [rho, azimuth, angle from above]; cartesian as GPS: [forward, right] or
            [right, up, backward].
        form: Habitat's ``GOAL_FORMAT``, in small letters.
    """
    if form == "cartesian":
        return gps_to_start_frame(shown)
    rho_m = float(shown[0]) * (math.sin(shown[2]) if len(shown) == 3 else 1.0)
    return rho_m * math.cos(shown[1]), rho_m * math.sin(shown[1])


# --- camera ---------------------------------------------------------------------------------------------------------


def optical_axes(pan_rad: float, tilt_rad: float) -> Vector:
    """The camera's optical axes in base_link: float64 (3, 3) with columns x right, y down, z forward in the image.

    It takes a vector of the optical frame to base_link. Pan is left positive, tilt is up positive.
    """
    cp, sp, ct, st = math.cos(pan_rad), math.sin(pan_rad), math.cos(tilt_rad), math.sin(tilt_rad)
    return np.array([[sp, cp * st, cp * ct], [-cp, sp * st, sp * ct], [0.0, -ct, st]])
