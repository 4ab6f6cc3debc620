"""The ROS interface of a robot as pure data: frame names, and messages made by any message library.

The driver, the simulated robot and bags share it. Nothing here imports ROS.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Intrinsics, PoseEstimate, Velocity, Zone

ACKNOWLEDGE_TOPIC = "/simulation/heard"
"""std_msgs/Header: stamp of a processed message, its topic as ``frame_id``. A zero stamp: no more will be processed."""

PLANAR_COVARIANCE = np.ix_((0, 1, 5), (0, 1, 5))
"""Index of (x, y, yaw) in a 6x6 ROS covariance of (x, y, z, roll, pitch, yaw)."""


Diagnosis = tuple[int, str, Mapping[str, object]]
"""Level, summary and values of a ``diagnostic_msgs/DiagnosticStatus``."""


def create_safety_diagnosis(cliff: bool, wheel_drop: bool) -> Diagnosis:
    """Return the safety diagnosis of a Create's driver (create_autonomy 1.3.0 and later), with its texts."""
    values = {"Wheeldrop": wheel_drop, "Cliff": cliff}
    if wheel_drop:
        return 1, "Wheeldrop detected", values
    return (1, "Cliff detected", values) if cliff else (0, "No safety issues detected", values)


def bits_of(zones: Zone, bits: Mapping[Zone, int]) -> int:
    """Encode zones as a bit field."""
    return sum(bit for zone, bit in bits.items() if zone in zones)


@dataclass(frozen=True)
class Frames:
    """The tf frames of a robot.

    Attributes:
        prefix: Stands before every frame but ``map``; ``<robot_name>/`` on an Interbotix robot, else empty.
    """

    prefix: str = ""

    @property
    def odom(self) -> str:
        return f"{self.prefix}odom"

    @property
    def base(self) -> str:
        return f"{self.prefix}base_footprint"

    @property
    def camera(self) -> str:
        return f"{self.prefix}camera_link"

    @property
    def optical(self) -> str:
        return f"{self.prefix}camera_color_optical_frame"


class MessageFactory(ABC):
    """Standard ROS messages, built of the runtime's types. Subclasses adapt one message library."""

    @abstractmethod
    def make(self, kind: str, **fields: Any) -> Any:
        """Build a message of a type such as ``std_msgs/String``; every field is given."""

    @abstractmethod
    def time(self, stamp_ns: int) -> Any:
        """Build a stamp."""

    @abstractmethod
    def numbers(self, values: Sequence[float] | NDArray[np.float64]) -> Any:
        """Convert a float64 array field."""

    @abstractmethod
    def buffer(self, data: bytes) -> Any:
        """Convert a uint8 array field."""

    def header(self, stamp_ns: int, frame: str = "") -> Any:
        """Build a header; the sequence number is set by the publisher or writer."""
        return self.make("std_msgs/Header", seq=0, stamp=self.time(stamp_ns), frame_id=frame)

    def vector(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Any:
        """Build a geometry_msgs/Vector3."""
        return self.make("geometry_msgs/Vector3", x=x, y=y, z=z)

    def quaternion(self, x: float, y: float, z: float, w: float) -> Any:
        """Build a geometry_msgs/Quaternion."""
        return self.make("geometry_msgs/Quaternion", x=x, y=y, z=z, w=w)

    def velocity(self, kind: str, velocity: Velocity, stamp_ns: int = 0) -> Any:
        """Build a geometry_msgs/Twist, or a geometry_msgs/TwistStamped with the stamp."""
        twist = self.make(
            "geometry_msgs/Twist",
            linear=self.vector(velocity.linear_m_s),
            angular=self.vector(z=velocity.angular_rad_s),
        )
        stamped = kind == "geometry_msgs/TwistStamped"
        return self.make(kind, header=self.header(stamp_ns, "base_link"), twist=twist) if stamped else twist

    def diagnostics(self, stamp_ns: int, diagnoses: Mapping[str, Diagnosis]) -> Any:
        """Build a diagnostic_msgs/DiagnosticArray of diagnoses by name."""
        status = [
            self.make(
                "diagnostic_msgs/DiagnosticStatus",
                level=level,
                name=name,
                message=summary,
                hardware_id="",
                values=[
                    self.make("diagnostic_msgs/KeyValue", key=key, value=str(value)) for key, value in items.items()
                ],
            )
            for name, (level, summary, items) in diagnoses.items()
        ]
        return self.make("diagnostic_msgs/DiagnosticArray", header=self.header(stamp_ns), status=status)

    def pose(self, pose: SE2) -> Any:
        """Build the geometry_msgs/Pose of a planar pose."""
        return self.make(
            "geometry_msgs/Pose",
            position=self.make("geometry_msgs/Point", x=pose.x_m, y=pose.y_m, z=0.0),
            orientation=self.quaternion(*yaw_quaternion(pose.yaw_rad)),
        )

    def pose_stamped(self, stamp_ns: int, frame: str, pose: SE2) -> Any:
        """Build the geometry_msgs/PoseStamped of a planar pose."""
        return self.make("geometry_msgs/PoseStamped", header=self.header(stamp_ns, frame), pose=self.pose(pose))

    def pose_with_covariance(self, estimate: PoseEstimate) -> Any:
        """Build the geometry_msgs/PoseWithCovarianceStamped of a localizer's estimate."""
        full = np.zeros((6, 6))
        full[PLANAR_COVARIANCE] = estimate.covariance
        return self.make(
            "geometry_msgs/PoseWithCovarianceStamped",
            header=self.header(estimate.stamp_ns, estimate.frame),
            pose=self._with_covariance("Pose", "pose", self.pose(estimate.pose), full.ravel()),
        )

    def odometry(
        self, stamp_ns: int, frames: Frames, pose: SE2, velocity: Velocity, covariance: Sequence[float] = (0.0,) * 6
    ) -> Any:
        """Build a nav_msgs/Odometry.

        Args:
            stamp_ns: When pose and velocity were measured.
            frames: Of the robot.
            pose: In the odometry frame.
            velocity: In the base's frame.
            covariance: Variances of x, y, z, roll, pitch and yaw; those of the velocity are zero.
        """
        return self.make(
            "nav_msgs/Odometry",
            header=self.header(stamp_ns, frames.odom),
            child_frame_id=frames.base,
            pose=self._with_covariance("Pose", "pose", self.pose(pose), np.diag(covariance).ravel()),
            twist=self._with_covariance("Twist", "twist", self.velocity("", velocity), np.zeros(36)),
        )

    def joint_state(
        self, stamp_ns: int, names: Sequence[str], angles_rad: Sequence[float], rates_rad_s: Sequence[float] = ()
    ) -> Any:
        """Build a sensor_msgs/JointState; efforts are zero where rates are given, else both are left out."""
        return self.make(
            "sensor_msgs/JointState",
            header=self.header(stamp_ns),
            name=list(names),
            position=self.numbers(angles_rad),
            velocity=self.numbers(rates_rad_s),
            effort=self.numbers([0.0] * len(rates_rad_s)),
        )

    def image(self, stamp_ns: int, frame: str, encoding: str, pixels: NDArray[Any]) -> Any:
        """Build a sensor_msgs/Image of an array (H, W) or (H, W, channels), rows without padding."""
        height, width = pixels.shape[:2]
        data = np.ascontiguousarray(pixels).tobytes()
        return self.make(
            "sensor_msgs/Image",
            header=self.header(stamp_ns, frame),
            height=height,
            width=width,
            encoding=encoding,
            is_bigendian=int(sys.byteorder == "big"),
            step=len(data) // height,
            data=self.buffer(data),
        )

    def camera_info(self, stamp_ns: int, frame: str, i: Intrinsics) -> Any:
        """Build the sensor_msgs/CameraInfo of an ideal pinhole."""
        no_roi = self.make("sensor_msgs/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False)
        return self.make(
            "sensor_msgs/CameraInfo",
            header=self.header(stamp_ns, frame),
            height=i.height,
            width=i.width,
            distortion_model="plumb_bob",
            D=self.numbers([0.0] * 5),
            K=self.numbers([i.fx, 0, i.cx, 0, i.fy, i.cy, 0, 0, 1]),
            R=self.numbers([1, 0, 0, 0, 1, 0, 0, 0, 1]),
            P=self.numbers([i.fx, 0, i.cx, 0, 0, i.fy, i.cy, 0, 0, 0, 1, 0]),
            binning_x=0,
            binning_y=0,
            roi=no_roi,
        )

    def transform(
        self, stamp_ns: int, parent: str, child: str, xyz_m: Sequence[float], quaternion: Sequence[float]
    ) -> Any:
        """Build a geometry_msgs/TransformStamped of ``child`` in ``parent``; the quaternion is (x, y, z, w)."""
        return self.make(
            "geometry_msgs/TransformStamped",
            header=self.header(stamp_ns, parent),
            child_frame_id=child,
            transform=self.make(
                "geometry_msgs/Transform", translation=self.vector(*xyz_m), rotation=self.quaternion(*quaternion)
            ),
        )

    def planar_transform(self, stamp_ns: int, parent: str, child: str, pose: SE2) -> Any:
        """Build a geometry_msgs/TransformStamped of a planar pose."""
        return self.transform(stamp_ns, parent, child, (pose.x_m, pose.y_m, 0.0), yaw_quaternion(pose.yaw_rad))

    def tf(self, *transforms: Any) -> Any:
        """Build a tf2_msgs/TFMessage."""
        return self.make("tf2_msgs/TFMessage", transforms=list(transforms))

    def _with_covariance(self, kind: str, field: str, value: Any, covariance: NDArray[np.float64]) -> Any:
        fields = {field: value, "covariance": self.numbers(covariance)}
        return self.make(f"geometry_msgs/{kind}WithCovariance", **fields)


def yaw_quaternion(yaw_rad: float) -> tuple[float, float, float, float]:
    """Return the quaternion (x, y, z, w) of a rotation about z."""
    return 0.0, 0.0, math.sin(yaw_rad / 2), math.cos(yaw_rad / 2)
