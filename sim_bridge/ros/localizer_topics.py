"""The pose topics: ground truth for the referee, and a localizer with its errors."""

from collections import deque
from dataclasses import replace

import numpy as np

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import StaleData
from robot_runtime.hal import PoseEstimate
from sim_bridge.robot.localizer import LocalizerOptions, SimLocalizer
from sim_bridge.ros.base_topics import BaseTopics
from sim_bridge.ros.context import SimContext
from sim_bridge.ros.network import Publisher
from sim_bridge.ros.timing import PeriodicTimer

TRUTH_TOPIC = "/simulation/ground_truth"
AMCL_TOPIC = "/amcl_pose"
TRACKER_TOPIC = "/tracker/pose"

TRUTH_HZ = 50.0

LOCALIZERS = ("none", "tf", "amcl", "tracker")
"""Outputs: nothing; tf ``map`` -> ``odom``; that and ``/amcl_pose``; a PoseStamped, as trackers publish it."""

NO_AGE_LIMIT_S = 1e9


class LocalizerTopics:
    """Ground truth, and one localizer.

    Args:
        context: The shared parts of the robot.
        options: Noise, rate and dropouts of the localizer.
        base: Its odometry is needed for tf.
        kind: One of :data:`LOCALIZERS`.
        tf: Publisher of ``/tf``.
    """

    def __init__(
        self, context: SimContext, options: LocalizerOptions, base: BaseTopics, kind: str, tf: Publisher
    ) -> None:
        network = context.network
        self._context, self._base, self._messages = context, base, network.messages
        self._timer = PeriodicTimer(TRUTH_HZ, context.world.step_ns)
        self._localizer = SimLocalizer("localizer", "map", context.clock, self._read, options)
        self._odoms: deque[tuple[int, SE2]] = deque()
        self._last_ns = -1
        self._tf = tf if kind in ("tf", "amcl") else None
        self._truth = network.publisher(TRUTH_TOPIC, "geometry_msgs/PoseStamped")
        amcl = "geometry_msgs/PoseWithCovarianceStamped"
        self._amcl = network.publisher(AMCL_TOPIC, amcl) if kind == "amcl" else None
        self._tracker = network.publisher(TRACKER_TOPIC, "geometry_msgs/PoseStamped") if kind == "tracker" else None
        self._localizer.connect()

    def restart(self, random: np.random.Generator) -> None:
        """The robot has been placed: discard measurements, and draw errors from ``random``."""
        self._odoms.clear()
        self._localizer.restart(random)

    def on_step(self, now_ns: int) -> None:
        """Publish the truth at its rate, and the localizer's newest estimate."""
        context, faults = self._context, self._context.faults
        if self._timer.due(now_ns) and self._truth.has_subscribers:
            self._truth.publish(self._messages.pose_stamped(context.stamp_ns(now_ns), "map", context.world.pose))
        self._localizer.on_step(now_ns)
        try:
            estimate = self._localizer.latest(NO_AGE_LIMIT_S)
        except StaleData:  # The first estimate has not been made, or was dropped.
            return
        if estimate.stamp_ns == self._last_ns:
            return
        self._last_ns = estimate.stamp_ns
        while self._odoms[0][0] < estimate.stamp_ns:
            self._odoms.popleft()
        if "localizer_silent" not in faults:
            pose = SE2(
                estimate.pose.x_m + faults.value("localizer_jump_m"),
                estimate.pose.y_m,
                wrap_angle(estimate.pose.yaw_rad + faults.value("localizer_jump_rad")),
            )
            stamp_ns = context.stamp_ns(estimate.stamp_ns)
            self._publish(replace(estimate, stamp_ns=stamp_ns, pose=pose), self._odoms[0][1])

    def _read(self) -> SE2:
        """Return the true pose, and record odometry of the same instant."""
        now_ns = self._context.clock.now_ns()
        self._odoms.append((now_ns, self._base.odom_at(now_ns)))
        return self._context.world.pose

    def _publish(self, estimate: PoseEstimate, odom: SE2) -> None:
        stamp_ns, pose, messages = estimate.stamp_ns, estimate.pose, self._messages
        if self._tf is not None and self._tf.has_subscribers:
            frame = self._base.variant.names.frames.odom
            self._tf.publish(messages.tf(messages.planar_transform(stamp_ns, "map", frame, pose @ odom.inverse())))
        if self._tracker is not None and self._tracker.has_subscribers:
            self._tracker.publish(messages.pose_stamped(stamp_ns, "map", pose))
        if self._amcl is not None and self._amcl.has_subscribers:
            self._amcl.publish(messages.pose_with_covariance(estimate))
