"""A node that publishes calibrated transforms on ``/tf_static``: the camera's mount, and any list of transforms.

For robots that publish a description of their own, and for frames that no description has (a tracker's ``world`` in
``map``). A file of transforms::

    transforms:
      - {parent: map, child: world, xyz_m: [1.2, 0.4, 0.0], rpy_deg: [0, 0, 90]}
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import genpy
import rospy
from geometry_msgs.msg import Quaternion, TransformStamped, Vector3
from pydantic import Field
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from robot_runtime.common import config
from robot_runtime.common.clock import NS_PER_S, unix_now_ns
from robot_runtime.common.transforms import Offset, Point3, quaternion_rpy
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.robots.camera_mount import load_mount

Frame = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_/]*$")]

TILT_LINKS = {"pyrobot-kobuki": "head_tilt_link", "pyrobot-create": "head_tilt_link", "interbotix": "{name}/tilt_link"}
CAMERA_LINKS = {"pyrobot-kobuki": "camera_link", "pyrobot-create": "camera_link", "interbotix": "{name}/camera_link"}


@dataclass(frozen=True)
class StaticTransform(config.Strict):
    """``child`` in ``parent``; rotations about the fixed axes x, y, z, as in URDF. tf2 forbids a leading slash."""

    parent: Frame
    child: Frame
    xyz_m: Point3 = (0.0, 0.0, 0.0)
    rpy_deg: Point3 = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if self.parent == self.child:
            raise ValueError(f"{self.parent!r} cannot be its own parent")


@dataclass(frozen=True)
class TransformsFile(config.Strict):
    """The content of a file of transforms."""

    transforms: tuple[StaticTransform, ...]

    def __post_init__(self) -> None:
        children = [transform.child for transform in self.transforms]
        if twice := {child for child in children if children.count(child) > 1}:
            raise ValueError(f"frame {min(twice)!r} has two parents: tf is a tree")


def camera_transform(family: str, robot_name: str, mount: str) -> StaticTransform:
    """Return ``camera_link`` in the tilt link, from a mount file. Raises ``ConfigError``."""
    if family not in TILT_LINKS:
        raise ConfigError(f"there is no LoCoBot family {family!r}", f"use one of: {', '.join(TILT_LINKS)}")
    place: Offset = load_mount(config.find_preset("mounts", mount)).camera
    parent, child = (links[family].format(name=robot_name) for links in (TILT_LINKS, CAMERA_LINKS))
    return StaticTransform(parent, child, place.xyz_m, place.rpy_deg)


def message_of(transforms: tuple[StaticTransform, ...]) -> Any:
    """Return the message for ``/tf_static``."""
    stamp = genpy.Time(*divmod(unix_now_ns(), NS_PER_S))
    stamped = []
    for transform in transforms:
        message = TransformStamped(
            header=Header(stamp=stamp, frame_id=transform.parent), child_frame_id=transform.child
        )
        message.transform.translation = Vector3(*transform.xyz_m)
        message.transform.rotation = Quaternion(*quaternion_rpy(*map(math.radians, transform.rpy_deg)))
        stamped.append(message)
    return TFMessage(stamped)


def read_parameters() -> tuple[StaticTransform, ...]:
    """Read the node's private parameters: ``family``, ``robot_name`` and ``mount`` for the camera; ``file`` for a list.

    Raises:
        ConfigError: Neither ``mount`` nor ``file`` is given, or a file is malformed.
    """
    family, robot_name = rospy.get_param("~family", ""), rospy.get_param("~robot_name", "locobot")
    mount, file = rospy.get_param("~mount", ""), rospy.get_param("~file", "")
    transforms: tuple[StaticTransform, ...] = ()
    if mount:
        transforms += (camera_transform(family, robot_name, mount),)
    if file:
        transforms += config.load(Path(file), TransformsFile).transforms
    if not transforms:
        raise ConfigError(f"{rospy.get_name()}: nothing to publish", "set the parameter ~mount or ~file")
    return transforms


def main() -> int:
    """Run the node."""
    rospy.init_node("static_transforms")
    try:
        transforms = read_parameters()
    except RuntimeFault as fault:
        rospy.logfatal(str(fault))
        print(f"error: {fault}", file=sys.stderr)
        return fault.exit_code
    rospy.Publisher("/tf_static", TFMessage, queue_size=1, latch=True).publish(message_of(transforms))
    rospy.spin()
    return 0
