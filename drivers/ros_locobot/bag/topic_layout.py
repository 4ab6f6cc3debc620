"""What stands on which topic of a bag: the robot's own as its family has them, the rest of a log beside them."""

from __future__ import annotations

from dataclasses import dataclass

from drivers.ros_locobot.options import BaseOptions, Topics, VariantName
from drivers.ros_locobot.robot_variants import VARIANTS, topics_of

OWN = "/robot_runtime"
"""Namespace of what only a log has; its messages are std_msgs/String with JSON, but for poses and object ids."""

PROVENANCE = f"{OWN}/provenance"
FILE = f"{OWN}/scene_file"
EPISODE = f"{OWN}/episode"
STEP = f"{OWN}/step"
BASE = f"{OWN}/base"
END = f"{OWN}/end"
POSE = f"{OWN}/pose"
REFEREE = f"{OWN}/referee_pose"
SEMANTIC = f"{OWN}/semantic"

MAP = "/map"
TF = "/tf"
TF_STATIC = "/tf_static"
MAP_FRAME = "map"

COMPRESSED = "/compressed"
COMPRESSED_DEPTH = "/compressedDepth"
"""What image_transport appends."""


@dataclass(frozen=True)
class Layout:
    """Topics and frames of one robot.

    Attributes:
        joints: names of pan and tilt, as on the topic.
    """

    family: VariantName
    topics: Topics
    joints: tuple[str, str]
    prefix: str

    @property
    def odom_frame(self) -> str:
        return f"{self.prefix}odom"

    @property
    def base_frame(self) -> str:
        return f"{self.prefix}base_footprint"

    @property
    def camera_frame(self) -> str:
        return f"{self.prefix}camera_link"

    @property
    def optical_frame(self) -> str:
        return f"{self.prefix}camera_color_optical_frame"


@dataclass(frozen=True)
class _Named:
    family: VariantName
    robot_name: str
    topics: Topics
    base: BaseOptions


def layout(family: VariantName, robot_name: str = "locobot") -> Layout:
    """The layout of a family's robot, with the topics that it has by default."""
    kind = VARIANTS[family]
    prefix = f"{robot_name}/" if kind.base_frame.startswith("{name}/") else ""
    topics = topics_of(_Named(family, robot_name, Topics(), BaseOptions()))
    return Layout(family, topics, (kind.pan_joint, kind.tilt_joint), prefix)
