"""Where the robot is, in ROS: exactly, for the referee; and as a localizer would say it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped

from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import StaleData
from sim_bridge.physics.world import World
from sim_bridge.robot.localizer import LocalizerOptions, SimLocalizer
from sim_bridge.ros import messages
from sim_bridge.ros.base_topics import BaseTopics
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.publisher import Publisher
from sim_bridge.ros.timing import PeriodicTimer, StampClock

TRUTH_TOPIC = "/simulation/ground_truth"
AMCL_TOPIC = "/amcl_pose"
TRACKER_TOPIC = "/tracker/pose"

TRUTH_HZ = 50.0

LOCALIZERS = ("none", "tf", "amcl", "tracker")
"""What speaks: nobody; tf ``map`` -> ``odom``; that and ``/amcl_pose``; a PoseStamped, as trackers send it."""

FOR_EVER_S = 1e9


class LocalizerTopics:
    """Ground truth, and one localizer.

    Args:
        kind: one of :data:`LOCALIZERS`.
        options: its noise, its rate, its dropouts.
    """

    def __init__(
        self,
        clock: Clock,
        stamps: StampClock,
        faults: Faults,
        world: World,
        options: LocalizerOptions,
        base: BaseTopics,
        kind: str,
        tf: Publisher,
    ) -> None:
        self._clock, self._stamps, self._faults = clock, stamps, faults
        self._world, self._base = world, base
        self._ticks = PeriodicTimer(TRUTH_HZ, world.step_ns)
        self._localizer = SimLocalizer("localizer", "map", clock, self._read, options)
        self._odoms: deque[tuple[int, SE2]] = deque()
        self._last_ns = -1
        self._tf = tf if kind in ("tf", "amcl") else None
        self._truth_out = Publisher(TRUTH_TOPIC, PoseStamped)
        self._amcl_out = Publisher(AMCL_TOPIC, PoseWithCovarianceStamped) if kind == "amcl" else None
        self._tracker_out = Publisher(TRACKER_TOPIC, PoseStamped) if kind == "tracker" else None

    def connect(self) -> None:
        """Begin to measure."""
        self._localizer.connect()

    def restart(self, random: np.random.Generator) -> None:
        """The robot was placed: forget where it was, and draw errors from ``random``."""
        self._odoms.clear()
        self._localizer.restart(random)

    def on_step(self, now_ns: int) -> None:
        """Publish the truth at its rate, and what the localizer has found since the last step."""
        if self._ticks.due(now_ns) and self._truth_out.has_subscribers:
            stamp_ns = self._stamp_ns(now_ns)
            self._truth_out.publish(messages.pose_stamped(stamp_ns, "map", self._world.pose))
        self._localizer.on_step(now_ns)
        try:
            estimate = self._localizer.latest(FOR_EVER_S)
        except StaleData:  # none yet: the first is on its way, or was lost
            return
        if estimate.stamp_ns == self._last_ns:
            return
        self._last_ns = estimate.stamp_ns
        odom = self._odom_of(estimate.stamp_ns)
        if "localizer_silent" in self._faults:
            return
        self._publish(estimate.stamp_ns, self._jumped(estimate.pose), odom, estimate.covariance)

    def _read(self) -> SE2:
        """The true pose; remembers what odometry says at the same instant."""
        now_ns = self._clock.now_ns()
        self._odoms.append((now_ns, self._base.odom_at(now_ns)))
        return self._world.pose

    def _odom_of(self, measured_ns: int) -> SE2:
        while self._odoms[0][0] < measured_ns:
            self._odoms.popleft()
        return self._odoms[0][1]

    def _stamp_ns(self, now_ns: int) -> int:
        return self._stamps.stamp_ns(now_ns) + seconds_to_ns(self._faults.value("clock_skew_s"))

    def _jumped(self, pose: SE2) -> SE2:
        return SE2(
            pose.x_m + self._faults.value("localizer_jump_m"),
            pose.y_m,
            wrap_angle(pose.yaw_rad + self._faults.value("localizer_jump_rad")),
        )

    def _publish(self, measured_ns: int, pose: SE2, odom: SE2, covariance: Any) -> None:
        stamp_ns = self._stamp_ns(measured_ns)
        if self._tf is not None and self._tf.has_subscribers:
            origin = pose @ odom.inverse()
            self._tf.publish(messages.planar_transform(stamp_ns, "map", self._base.family.names.odom_frame, origin))
        if self._tracker_out is not None and self._tracker_out.has_subscribers:
            self._tracker_out.publish(messages.pose_stamped(stamp_ns, "map", pose))
        if self._amcl_out is not None and self._amcl_out.has_subscribers:
            message = PoseWithCovarianceStamped(header=messages.header(stamp_ns, "map"))
            message.pose.pose = messages.planar_pose(pose)
            for row, i in enumerate((0, 1, 5)):
                for column, j in enumerate((0, 1, 5)):
                    message.pose.covariance[6 * i + j] = covariance[row, column]
            self._amcl_out.publish(message)
