"""The pan-tilt's topics: PyRobot's pair of Float64 topics, or Interbotix' joint groups."""

import math
from typing import Any

from sim_bridge.robot.head import SimHead
from sim_bridge.ros.base_topics import BaseTopics
from sim_bridge.ros.context import SimContext
from sim_bridge.ros.network import Publisher
from sim_bridge.ros.timing import PeriodicTimer

JOINT_STATE, FLOAT, GROUP = "sensor_msgs/JointState", "std_msgs/Float64", "interbotix_xs_msgs/"

LIMIT_TOLERANCE_RAD = math.radians(0.1)
"""One count of a servo, 0.088 degrees: limits are integer counts."""


class HeadTopics:
    """Two servos. In ROS positive tilt looks **down**; a goal beyond a servo's limits is ignored silently."""

    def __init__(self, context: SimContext, head: SimHead, base: BaseTopics) -> None:
        names, network = context.variant.names, context.network
        self._messages = network.messages
        self._context, self._head, self._base, self._names = context, head, base, names
        self._timer = PeriodicTimer(names.head_hz, context.world.step_ns)
        self._joints = network.publisher(names.head_joint_states, JOINT_STATE)
        self._merged = network.publisher(names.merged_joints, JOINT_STATE) if names.merged_joints else None
        self._goal = (0.0, 0.0)
        self._single: tuple[Publisher, ...] = ()
        if names.frames.prefix:
            network.subscribe(names.topics["joint_group"], f"{GROUP}JointGroupCommand", self._on_group)
            single = f"/{names.frames.prefix}commands/joint_single"
            network.subscribe(single, f"{GROUP}JointSingleCommand", self._on_single)
        else:
            self._single = network.publisher("/pan/state", FLOAT), network.publisher("/tilt/state", FLOAT)
            network.subscribe(names.topics["pan"], FLOAT, lambda message: self._submit(0, message.data))
            network.subscribe(names.topics["tilt"], FLOAT, lambda message: self._submit(1, message.data))

    def restart(self) -> None:
        """The head has been placed."""
        self._goal = self._angles()

    def on_step(self, now_ns: int) -> None:
        """Publish the joint states at their rate."""
        if not self._timer.due(now_ns) or "head_silent" in self._context.faults:
            return
        stamp_ns, angles = self._context.stamp_ns(now_ns), self._angles()
        if self._joints.has_subscribers:
            self._joints.publish(self._messages.joint_state(stamp_ns, self._names.head_joints, angles, (0.0, 0.0)))
        for publisher, angle_rad in zip(self._single, angles, strict=False):
            if publisher.has_subscribers:
                publisher.publish(self._messages.make(FLOAT, data=angle_rad))
        if self._merged is not None and self._merged.has_subscribers:
            wheel_angles, wheel_rates = self._base.wheel_states()
            joints = (*self._names.head_joints, *self._base.variant.wheels.names)
            merged = self._messages.joint_state(stamp_ns, joints, (*angles, *wheel_angles), (0.0, 0.0, *wheel_rates))
            self._merged.publish(merged)

    def _angles(self) -> tuple[float, float]:
        """Return pan and tilt, tilt positive down."""
        pan_rad, tilt_up_rad = self._head.angles(self._context.clock.now_ns())
        return pan_rad, -tilt_up_rad

    def _on_group(self, message: Any) -> None:
        if message.name in ("camera", "all") and len(message.cmd) == 2:
            for joint, angle_rad in enumerate(message.cmd):
                self._submit(joint, angle_rad)

    def _on_single(self, message: Any) -> None:
        if message.name in self._names.head_joints:
            self._submit(self._names.head_joints.index(message.name), message.cmd)

    def _submit(self, joint: int, angle_rad: float) -> None:
        self._context.executor.submit(lambda: self._command(joint, angle_rad))

    def _command(self, joint: int, angle_rad: float) -> None:
        limits = self._head.limits
        low_rad, high_rad = (
            (limits.min_pan_rad, limits.max_pan_rad) if joint == 0 else (-limits.max_tilt_rad, -limits.min_tilt_rad)
        )
        # In this form the condition refuses NaN as well.
        if not low_rad - LIMIT_TOLERANCE_RAD <= angle_rad <= high_rad + LIMIT_TOLERANCE_RAD:
            return
        self._goal = (angle_rad, self._goal[1]) if joint == 0 else (self._goal[0], angle_rad)
        if "head_stuck" not in self._context.faults:
            self._head.command(self._goal[0], -self._goal[1])
