"""Messages of the robots' topics, made of the runtime's own types. Pure; stamps are the log's, nothing is measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.ros_locobot.bag.definitions import stored_name, typestore
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Intrinsics, PoseEstimate, Zone
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

_BITS = {Zone.RIGHT: 1, Zone.CENTER: 2, Zone.LEFT: 4}
_WHEEL_BITS = {Zone.RIGHT: 1, Zone.LEFT: 2}
_OCCUPANCY = {Cell.FREE: 0, Cell.OCCUPIED: 100, Cell.UNKNOWN: -1}
_COVARIANCE_OF_PLANE = np.ix_((0, 1, 5), (0, 1, 5))


def make(kind: str, **values: Any) -> Any:
    """A message of type ``std_msgs/String`` and the like."""
    return typestore().types[stored_name(kind)](**values)


def time(stamp_ns: int) -> Any:
    """A stamp; what a message's header or a transform carries."""
    return typestore().types["builtin_interfaces/msg/Time"](*divmod(stamp_ns, NS_PER_S))


def header(stamp_ns: int, frame: str) -> Any:
    """A header; the writer counts ``seq``."""
    return make("std_msgs/Header", seq=0, stamp=time(stamp_ns), frame_id=frame)


def text(data: str) -> Any:
    """A std_msgs/String."""
    return make("std_msgs/String", data=data)


def image(stamp_ns: int, frame: str, encoding: str, pixels: NDArray[Any]) -> Any:
    """An image of the array's bytes: (H, W) or (H, W, channels), little-endian."""
    height, width = pixels.shape[:2]
    data = np.frombuffer(np.ascontiguousarray(pixels).tobytes(), np.uint8)
    return make(
        "sensor_msgs/Image",
        header=header(stamp_ns, frame),
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=0,
        step=len(data) // height,
        data=data,
    )


def camera_info(stamp_ns: int, frame: str, i: Intrinsics) -> Any:
    """The ideal pinhole of the images."""
    return make(
        "sensor_msgs/CameraInfo",
        header=header(stamp_ns, frame),
        height=i.height,
        width=i.width,
        distortion_model="plumb_bob",
        D=np.zeros(5),
        K=np.array([i.fx, 0, i.cx, 0, i.fy, i.cy, 0, 0, 1], float),
        R=np.eye(3).ravel(),
        P=np.array([i.fx, 0, i.cx, 0, 0, i.fy, i.cy, 0, 0, 0, 1, 0], float),
        binning_x=0,
        binning_y=0,
        roi=make("sensor_msgs/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False),
    )


def odometry(state: BaseState, frame: str, child: str) -> Any:
    """Odometry with the measured velocity; the log has no covariance of it."""
    velocity = make(
        "geometry_msgs/Twist",
        linear=_vector(state.velocity.linear_m_s),
        angular=_vector(z=state.velocity.angular_rad_s),
    )
    return make(
        "nav_msgs/Odometry",
        header=header(state.stamp_ns, frame),
        child_frame_id=child,
        pose=make("geometry_msgs/PoseWithCovariance", pose=_pose(state.odom), covariance=np.zeros(36)),
        twist=make("geometry_msgs/TwistWithCovariance", twist=velocity, covariance=np.zeros(36)),
    )


def pose_with_covariance(estimate: PoseEstimate) -> Any:
    """A localizer's estimate."""
    covariance = np.zeros((6, 6))
    covariance[_COVARIANCE_OF_PLANE] = estimate.covariance
    pose = make("geometry_msgs/PoseWithCovariance", pose=_pose(estimate.pose), covariance=covariance.ravel())
    return make("geometry_msgs/PoseWithCovarianceStamped", header=header(estimate.stamp_ns, estimate.frame), pose=pose)


def joint_state(stamp_ns: int, names: tuple[str, ...], angles_rad: tuple[float, ...]) -> Any:
    """Joints and their angles; the log has neither speed nor effort."""
    none = np.zeros(0)
    return make(
        "sensor_msgs/JointState",
        header=header(stamp_ns, ""),
        name=list(names),
        position=np.array(angles_rad, float),
        velocity=none,
        effort=none,
    )


def kobuki_core(state: BaseState) -> Any:
    """A Kobuki's core packet. What no log has (encoders, currents, buttons, charger) is zero."""
    # 0 is what a base says that does not know its battery.
    battery = min(255, max(0, round(state.battery_v * 10))) if math.isfinite(state.battery_v) else 0
    return make(
        "kobuki_msgs/SensorState",
        header=header(state.stamp_ns, ""),
        time_stamp=state.stamp_ns // 1_000_000 % 65536,
        bumper=_bits(state.bumper, _BITS),
        wheel_drop=_bits(state.wheel_drop, _WHEEL_BITS),
        cliff=_bits(state.cliff, _BITS),
        left_encoder=0,
        right_encoder=0,
        left_pwm=0,
        right_pwm=0,
        buttons=0,
        charger=0,
        battery=battery,
        bottom=np.zeros(3, np.uint16),
        current=np.zeros(2, np.uint8),
        over_current=0,
        digital_input=0,
        analog_input=np.zeros(4, np.uint16),
    )


def create_bumper(state: BaseState) -> Any:
    """A Create's bumper: a blow to the middle closes both switches. What no log has (light sensors) is zero."""
    names = ("left", "front_left", "center_left", "center_right", "front_right", "right")
    middle = Zone.CENTER in state.bumper
    return make(
        "ca_msgs/Bumper",
        header=header(state.stamp_ns, ""),
        is_left_pressed=middle or Zone.LEFT in state.bumper,
        is_right_pressed=middle or Zone.RIGHT in state.bumper,
        **{f"is_light_{name}": False for name in names},
        **{f"light_signal_{name}": 0 for name in names},
    )


def transform(
    stamp_ns: int, parent: str, child: str, xyz_m: tuple[float, float, float], quaternion: tuple[float, ...]
) -> Any:
    """``child`` in ``parent``; the quaternion is (x, y, z, w)."""
    x, y, z, w = quaternion
    return make(
        "geometry_msgs/TransformStamped",
        header=header(stamp_ns, parent),
        child_frame_id=child,
        transform=make(
            "geometry_msgs/Transform",
            translation=_vector(*xyz_m),
            rotation=make("geometry_msgs/Quaternion", x=x, y=y, z=z, w=w),
        ),
    )


def planar_transform(stamp_ns: int, parent: str, child: str, pose: SE2) -> Any:
    """A planar pose as a transform."""
    half_rad = pose.yaw_rad / 2
    return transform(
        stamp_ns, parent, child, (pose.x_m, pose.y_m, 0.0), (0.0, 0.0, math.sin(half_rad), math.cos(half_rad))
    )


def tf(*transforms: Any) -> Any:
    """What goes to ``/tf`` and ``/tf_static``."""
    return make("tf2_msgs/TFMessage", transforms=list(transforms))


def occupancy_grid(stamp_ns: int, map_: OccupancyMap, frame: str) -> Any:
    """The map as map_server publishes it."""
    lookup = np.array([_OCCUPANCY[Cell(i)] for i in range(len(Cell))], np.int8)
    rows, columns = map_.cells.shape
    info = make(
        "nav_msgs/MapMetaData",
        map_load_time=time(0),
        resolution=map_.resolution_m,
        width=columns,
        height=rows,
        origin=_pose(SE2(map_.origin_x_m, map_.origin_y_m)),
    )
    return make("nav_msgs/OccupancyGrid", header=header(stamp_ns, frame), info=info, data=lookup[map_.cells].ravel())


def _bits(zones: Zone, bits: dict[Zone, int]) -> int:
    return sum(bit for zone, bit in bits.items() if zone in zones)


def _vector(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Any:
    return make("geometry_msgs/Vector3", x=x, y=y, z=z)


def _pose(pose: SE2) -> Any:
    half_rad = pose.yaw_rad / 2
    return make(
        "geometry_msgs/Pose",
        position=make("geometry_msgs/Point", x=pose.x_m, y=pose.y_m, z=0.0),
        orientation=make("geometry_msgs/Quaternion", x=0.0, y=0.0, z=math.sin(half_rad), w=math.cos(half_rad)),
    )
