"""The pan-tilt: PyRobot's two Float64 topics or Interbotix' joint group; its state comes from JointState.

In both stacks a positive tilt of the joint looks down (its axis is +y); ``hal`` counts upward. Several nodes publish
JointState on one topic, wheels apart from the head: messages without both joints of the head are ignored.
"""

import math
import threading

from drivers.ros.connection.received import Received
from drivers.ros.connection.session import Publisher, Session
from drivers.ros.device import RosDevice
from drivers.ros.joints import has_joints, head_angles
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.options import RobotOptions
from drivers.ros.robot_variants import VARIANTS, head_limits, topics_of
from drivers.ros.topics import kinds_of
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

    def __init__(self, session: Session, options: RobotOptions, motion: MotionHistory) -> None:
        super().__init__("head", session)
        self._motion = motion
        self._family, self._variant = options.family, VARIANTS[options.family]
        self._topics = topics_of(options)
        self._limits = head_limits(options)
        self._stillness = Stillness(math.radians(options.head.tolerance_deg), self._limits.settle_s)
        self._joints = self._cache(self._topics.joints)
        self._publishers: list[Publisher] = []
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
        make, joints_rad = self._session.messages.make, (goal[0], -goal[1])
        if self._variant.head == "floats":
            for publisher, angle_rad in zip(self._publishers, joints_rad, strict=True):
                publisher.publish(make("std_msgs/Float64", data=angle_rad))
        else:
            self._publishers[0].publish(
                make("interbotix_xs_msgs/JointGroupCommand", name="camera", cmd=list(joints_rad))
            )
        return goal

    def _opened(self) -> None:
        session, topics, family = self._session, self._topics, self._family
        kind, *_ = kinds_of(family, "joints")
        self._endpoints.append(
            session.subscribe(topics.joints, kind, self._on_joints, JOINT_QUEUE_SIZE, acknowledged=True)
        )
        commands = ("pan", "tilt") if self._variant.head == "floats" else ("joint_group",)
        self._publishers = [session.advertise(getattr(topics, name), *kinds_of(family, name)) for name in commands]
        self._endpoints.extend(self._publishers)
        for publisher in self._publishers:
            session.require_subscriber(publisher)

    def _closed(self) -> None:
        self._publishers = []
        with self._lock:
            self._stillness.reset()

    def _on_joints(self, received: Received) -> None:
        message = received.message
        if not has_joints(message, self._variant.joints):
            return
        *angles, why = head_angles(message, self._variant.joints, self._limits)
        if why:
            self._joints.lose(why)
        elif (taken := self._joints.receive(received)) is not None:
            self._motion.head(taken.stamp_ns, *angles)
            with self._lock:
                self._stillness.sample((angles[0], angles[1]), taken.stamp_ns)
