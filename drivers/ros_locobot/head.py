"""The pan-tilt: PyRobot's two Float64 topics or Interbotix' joint group; its state comes from JointState.

In both stacks a positive tilt of the joint looks down (its axis is +y); ``hal`` counts upward. Several nodes publish
JointState on one topic, wheels apart from the head: messages without both joints of the head are ignored.
"""

import math
import threading
from typing import Any

import rospy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.device import RosDevice
from drivers.ros_locobot.joints import has_joints, head_angles
from drivers.ros_locobot.localizer.motion_history import MotionHistory
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.robot_variants import VARIANTS, head_limits, topics_of
from robot_runtime.hal import Head, HeadLimits, HeadState
from robot_runtime.hal.head import Stillness

JOINT_QUEUE_SIZE = 10
"""Wheels and head share the topic, so the newest message alone may be the wrong one."""


class RosHead(RosDevice, Head):
    """A pan-tilt behind ROS topics. It is still once it has been at its goal for ``settle_s``.

    Args:
        session: The connection to the ROS network.
        options: Topics and limits.
        motion: Gets the head's angles.
    """

    def __init__(self, session: Session, options: RosOptions, motion: MotionHistory) -> None:
        super().__init__("head", session)
        self._motion = motion
        self._variant = VARIANTS[options.family]
        self._topics = topics_of(options)
        self._limits = head_limits(options)
        self._stillness = Stillness(math.radians(options.head.tolerance_deg), self._limits.settle_s)
        self._joints = self._cache(self._topics.joints)
        self._publishers: list[rospy.Publisher] = []
        self._lock = threading.Lock()

    @property
    def limits(self) -> HeadLimits:
        return self._limits

    def state(self, max_age_s: float) -> HeadState:
        self._require_working()
        received = self._joints.read(max_age_s)
        pan_rad, tilt_rad, _ = head_angles(received.message, self._variant.joints, self._limits)
        with self._lock:
            return HeadState(received.stamp_ns, pan_rad, tilt_rad, moving=not self._stillness.still)

    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        self._require_working()
        goal = self._limits.clip(pan_rad, tilt_rad)
        with self._lock:
            self._stillness.set_goal(goal, self._clock.now_ns())
        self._publish(goal[0], -goal[1])
        return goal

    def _publish(self, pan_joint_rad: float, tilt_joint_rad: float) -> None:
        if self._variant.head == "floats":
            for publisher, angle_rad in zip(self._publishers, (pan_joint_rad, tilt_joint_rad), strict=True):
                publisher.publish(Float64(angle_rad))
        else:
            from interbotix_xs_msgs.msg import JointGroupCommand

            self._publishers[0].publish(JointGroupCommand(name="camera", cmd=[pan_joint_rad, tilt_joint_rad]))

    def _opened(self) -> None:
        session, topics = self._session, self._topics
        self._endpoints.append(
            session.subscribe(topics.joints, JointState, self._on_joints, JOINT_QUEUE_SIZE, acknowledged=True)
        )
        if self._variant.head == "floats":
            commands: list[tuple[str, Any]] = [(topics.pan, Float64), (topics.tilt, Float64)]
        else:
            from interbotix_xs_msgs.msg import JointGroupCommand

            commands = [(topics.joint_group, JointGroupCommand)]
        self._publishers = [session.advertise(topic, message) for topic, message in commands]
        self._endpoints.extend(self._publishers)
        for publisher in self._publishers:
            session.require_subscriber(publisher)

    def _closed(self) -> None:
        self._publishers = []
        with self._lock:
            self._stillness.reset()

    def _on_joints(self, message: JointState) -> None:
        if not has_joints(message, self._variant.joints):
            return
        *angles, why = head_angles(message, self._variant.joints, self._limits)
        if why:
            self._joints.lose(why)
        elif (received := self._joints.receive(message)) is not None:
            self._motion.head(received.stamp_ns, *angles)
            with self._lock:
                self._stillness.sample((angles[0], angles[1]), received.stamp_ns)
