"""The topics of a bag: the robot's own as on the robot, and those of a log's other records."""

from dataclasses import dataclass

from drivers.ros.options import Topics
from drivers.ros.protocol import Frames
from drivers.ros.robot_variants import VARIANTS
from drivers.ros.topics import ROS_1_FAMILIES, topic_names

LOG_NAMESPACE = "/robot_runtime"
"""Namespace of what a log has and a robot does not publish; steps and end are std_msgs/String with JSON."""

STEP = f"{LOG_NAMESPACE}/step"
END = f"{LOG_NAMESPACE}/end"
POSE = f"{LOG_NAMESPACE}/pose"
REFEREE = f"{LOG_NAMESPACE}/referee_pose"
SEMANTIC = f"{LOG_NAMESPACE}/semantic"

MAP = "/map"
TF = "/tf"
TF_STATIC = "/tf_static"
MAP_FRAME = "map"


@dataclass(frozen=True)
class Layout:
    """Topics and frames of a robot.

    Attributes:
        topics: Full names.
        joints: Names of pan and tilt in JointState.
        frames: Names of tf frames.
        ros: 1 or 2.
    """

    topics: Topics
    joints: tuple[str, str]
    frames: Frames
    ros: int = 1


def layout(family: str, robot_name: str = "locobot") -> Layout:
    """Return the default layout of a variant."""
    variant = VARIANTS[family]
    topics = Topics(**topic_names(family, robot_name))
    return Layout(topics, variant.joints, variant.frames(robot_name), 1 if family in ROS_1_FAMILIES else 2)
