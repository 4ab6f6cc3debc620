"""Pan and tilt in ROS: PyRobot's pair of Float64 topics, or Interbotix' joint groups."""

from __future__ import annotations

import math
from typing import Any

import rospy
from interbotix_xs_msgs.msg import JointGroupCommand, JointSingleCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from robot_runtime.common.clock import Clock, seconds_to_ns
from sim_bridge.robot.head import SimHead
from sim_bridge.ros import messages
from sim_bridge.ros.base_topics import BaseTopics
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.physics_executor import PhysicsExecutor
from sim_bridge.ros.publisher import Publisher
from sim_bridge.ros.timing import PeriodicTimer, StampClock

REACH_TOLERANCE_RAD = math.radians(0.1)
"""One count of a servo, 0.088 degrees: limits are whole counts."""


class HeadTopics:
    """Two servos. In ROS positive tilt looks **down**; a goal beyond a servo's limits is ignored, without a word.

    Args:
        base: whose wheels stand in the topic where all joints come together.
    """

    def __init__(
        self,
        clock: Clock,
        stamps: StampClock,
        executor: PhysicsExecutor,
        faults: Faults,
        head: SimHead,
        base: BaseTopics,
        step_ns: int,
    ) -> None:
        self._clock, self._stamps, self._executor, self._faults = clock, stamps, executor, faults
        self._head, self._base = head, base
        self._names = names = base.family.names
        self._ticks = PeriodicTimer(names.head_hz, step_ns)
        self._joints_out = Publisher(names.head_joint_states, JointState)
        self._merged_out = Publisher(names.merged_joints, JointState) if names.merged_joints else None
        self._goal = (0.0, 0.0)
        self._single_out: tuple[Publisher, Publisher] | None = None
        if names.frame_prefix:
            root = f"/{names.frame_prefix}commands"
            rospy.Subscriber(f"{root}/joint_group", JointGroupCommand, self._on_group)
            rospy.Subscriber(f"{root}/joint_single", JointSingleCommand, self._on_single)
        else:
            self._single_out = Publisher("/pan/state", Float64), Publisher("/tilt/state", Float64)
            rospy.Subscriber("/pan/command", Float64, lambda message: self._post(0, message.data))
            rospy.Subscriber("/tilt/command", Float64, lambda message: self._post(1, message.data))

    def restart(self) -> None:
        """The head has been placed."""
        self._goal = self._present()

    def on_step(self, now_ns: int) -> None:
        """Publish when it is time to."""
        if not self._ticks.due(now_ns) or "head_silent" in self._faults:
            return
        stamp_ns = self._stamps.stamp_ns(now_ns) + seconds_to_ns(self._faults.value("clock_skew_s"))
        angles = self._present()
        if self._joints_out.has_subscribers:
            self._joints_out.publish(messages.joint_state(stamp_ns, self._names.head_joints, angles, (0.0, 0.0)))
        if self._single_out is not None:
            for target, angle_rad in zip(self._single_out, angles, strict=True):
                if target.has_subscribers:
                    target.publish(Float64(angle_rad))
        if self._merged_out is not None and self._merged_out.has_subscribers:
            positions, rates = self._base.wheel_states()
            joints = (*self._names.head_joints, *self._base.family.wheels.names)
            merged = messages.joint_state(stamp_ns, joints, (*angles, *positions), (0.0, 0.0, *rates))
            self._merged_out.publish(merged)

    def _present(self) -> tuple[float, float]:
        pan_rad, tilt_up_rad = self._head.angles(self._clock.now_ns())
        return pan_rad, -tilt_up_rad

    def _on_group(self, message: Any) -> None:
        if message.name in ("camera", "all") and len(message.cmd) == 2:
            for joint, angle_rad in enumerate(message.cmd):
                self._post(joint, angle_rad)

    def _on_single(self, message: Any) -> None:
        if message.name in self._names.head_joints:
            self._post(self._names.head_joints.index(message.name), message.cmd)

    def _post(self, joint: int, angle_rad: float) -> None:
        self._executor.post(lambda: self._command(joint, angle_rad))

    def _command(self, joint: int, angle_rad: float) -> None:
        limits = self._head.limits
        low_rad, high_rad = (
            (limits.min_pan_rad, limits.max_pan_rad) if joint == 0 else (-limits.max_tilt_rad, -limits.min_tilt_rad)
        )
        # Written this way round, what is not a number is beyond the limits too.
        if not low_rad - REACH_TOLERANCE_RAD <= angle_rad <= high_rad + REACH_TOLERANCE_RAD:
            return
        self._goal = (angle_rad, self._goal[1]) if joint == 0 else (self._goal[0], angle_rad)
        if "head_stuck" not in self._faults:
            self._head.command(self._goal[0], -self._goal[1])
