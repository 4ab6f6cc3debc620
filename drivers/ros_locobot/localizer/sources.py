"""Localizers over ROS topics: the base's odometry, tf, PoseStamped, PoseWithCovarianceStamped."""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np
import rospy
import tf2_ros
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from tf2_msgs.msg import TFMessage

from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.device import RosDevice
from drivers.ros_locobot.localizer.alignment import aligned, read_alignment
from drivers.ros_locobot.localizer.messages import planar, planar_covariance, planar_pose
from drivers.ros_locobot.localizer.motion_history import MotionHistory
from drivers.ros_locobot.localizer.pose_gate import GateLimits, PoseGate
from drivers.ros_locobot.options import LocalizerOptions, RosOptions
from drivers.ros_locobot.robot_variants import base_frame, topics_of
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.hal.pose_history import PoseHistory, pose_at

POLL_S = 0.005
TF_QUEUE_SIZE = 100
"""``/tf`` carries every joint and frame of the robot; no message may be dropped."""

log = logging.getLogger(__name__)


class RosLocalizer(RosDevice, Localizer):
    """The common part of all sources: :class:`PoseGate`, history, and errors that name the topic.

    Args:
        role: ``localizer``, ``referee`` or ``odometry``, for messages.
        session: The connection to the ROS network.
        options: Of the source.
        frame: Of its poses.
        topic: For messages.
        motion: Odometry for the plausibility check.
    """

    def __init__(
        self, role: str, session: Session, options: LocalizerOptions, frame: str, topic: str, motion: MotionHistory
    ) -> None:
        super().__init__(role, session)
        self._options = options
        self._source = self._cache(topic)
        self._info = LocalizerInfo(f"{role} on {topic}", frame, options.rate_hz)
        self._history = PoseHistory(self._info.name, frame, max_gap_s=options.max_gap_s)
        self._gate = PoseGate(GateLimits.of(options), motion.known_by)
        self._lock = threading.Lock()
        self._paused = False
        self._since_ns = 0

    @property
    def info(self) -> LocalizerInfo:
        return self._info

    def latest(self, max_age_s: float) -> PoseEstimate:
        self._require_working()
        try:
            return self._history.latest(self._clock.now_ns, max_age_s)
        except StaleData:
            self._source.read(max_age_s)  # names the topic, and distinguishes silence from disagreeing clocks
            raise

    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        self._require_working()
        return pose_at(self._history, self._clock, stamp_ns, timeout_s, POLL_S)

    def arrivals(self, after: int = 0) -> Arrivals:
        self._require_working()
        return self._history.arrivals(after)

    def pause(self) -> None:
        """Ignore poses until :meth:`forget`: the robot is being placed elsewhere."""
        self._paused = True

    def forget(self, since_ns: int = 0) -> None:
        """Discard the poses of the former place: those with stamps before ``since_ns``, also if still in transit."""
        with self._lock:
            self._paused, self._since_ns = False, since_ns
            self._history.clear()
            self._gate.reset()

    def _closed(self) -> None:
        self.forget()

    def _is_current(self, estimate: PoseEstimate) -> bool:
        """Whether an estimate belongs to the robot's present place; call it under the lock."""
        return not self._paused and estimate.stamp_ns >= self._since_ns

    def _take(self, estimate: PoseEstimate) -> None:
        with self._lock:
            if not self._is_current(estimate):
                return
            before = self._gate.reason
            checked = self._gate.check(estimate)
            self._history.add(checked)
            reason = self._gate.reason
        if checked.status is PoseStatus.LOST and not before:
            log.warning("%s: the robot is lost: %s", self._info.name, reason)
        elif before and not reason:
            log.warning("%s: the robot is localized again", self._info.name)


class OdometryLocalizer(RosLocalizer):
    """The base's dead reckoning in ``odom``, without plausibility check."""

    def __init__(
        self, role: str, session: Session, options: LocalizerOptions, topic: str, motion: MotionHistory
    ) -> None:
        super().__init__(role, session, options, "odom", topic, motion)

    def _opened(self) -> None:
        self._endpoints.append(self._session.subscribe(self._source.topic, Odometry, self._on_message))

    def _on_message(self, message: Odometry) -> None:
        received = self._source.receive(message)
        if received is not None:
            pose = planar_pose(message.pose.pose, self._source.topic)
            covariance = planar_covariance(message.pose.covariance)
            self._take(PoseEstimate(received.stamp_ns, pose, "odom", covariance))

    def _take(self, estimate: PoseEstimate) -> None:
        with self._lock:
            if self._is_current(estimate):
                self._history.add(estimate)


class PoseLocalizer(RosLocalizer):
    """PoseStamped or PoseWithCovarianceStamped in the map's frame, or in one that an alignment transforms to it."""

    def __init__(
        self, role: str, session: Session, options: LocalizerOptions, robot: str, motion: MotionHistory
    ) -> None:
        super().__init__(role, session, options, "map", options.topic, motion)
        self._with_covariance = options.source == "pose_with_covariance"
        self._alignment = read_alignment(options.alignment, robot) if options.alignment else None

    def _opened(self) -> None:
        message = PoseWithCovarianceStamped if self._with_covariance else PoseStamped
        self._endpoints.append(self._session.subscribe(self._source.topic, message, self._on_message))

    def _on_message(self, message: Any) -> None:
        found = message.header.frame_id.lstrip("/")
        if found != self._options.map_frame:
            raise DeviceFault(
                f"topic {self._source.topic}: poses are in frame {found!r}, not {self._options.map_frame!r}",
                "set map_frame in the robot's YAML if that frame is the map, else transform the poses",
            )
        received = self._source.receive(message)
        if received is None:
            return
        covariance = np.zeros((3, 3))
        pose = message.pose
        if self._with_covariance:
            pose, covariance = message.pose.pose, planar_covariance(message.pose.covariance)
        estimate = PoseEstimate(received.stamp_ns, planar_pose(pose, self._source.topic), "map", covariance)
        self._take(estimate if self._alignment is None else aligned(estimate, self._alignment))


class TfLocalizer(RosLocalizer):
    """The transform from the map to the base at the newest instant at which the complete chain is known.

    When a broadcaster dies, that instant stays, and the pose becomes stale. A broadcaster that dates its transforms
    forward (AMCL) changes nothing, because the rest of the chain is not known yet.
    """

    def __init__(
        self, role: str, session: Session, options: LocalizerOptions, base: str, motion: MotionHistory
    ) -> None:
        super().__init__(
            role, session, options, "map", f"/tf ({options.map_frame} to {options.base_frame or base})", motion
        )
        self._base = options.base_frame or base
        self._buffer = tf2_ros.BufferCore()
        self._newest_ns = 0

    def _opened(self) -> None:
        session = self._session
        self._buffer = tf2_ros.BufferCore()
        self._newest_ns = 0
        self._endpoints.append(
            session.subscribe("/tf_static", TFMessage, self._on_static, TF_QUEUE_SIZE, required=False)
        )
        self._endpoints.append(session.subscribe("/tf", TFMessage, self._on_transforms, TF_QUEUE_SIZE))

    def _on_static(self, message: TFMessage) -> None:
        for transform in message.transforms:
            self._buffer.set_transform_static(transform, self._name)

    def _on_transforms(self, message: TFMessage) -> None:
        for transform in message.transforms:
            self._buffer.set_transform(transform, self._name)
        try:
            found = self._buffer.lookup_transform_core(self._options.map_frame, self._base, rospy.Time(0))
        except tf2_ros.TransformException:
            return  # The chain is not complete yet: latest() reports that.
        stamp_ns = found.header.stamp.to_nsec()
        if stamp_ns <= self._newest_ns or self._source.receive(found) is None:
            return
        self._newest_ns = stamp_ns
        pose = planar(found.transform.translation, found.transform.rotation, self._source.topic)
        self._take(PoseEstimate(stamp_ns, pose, "map"))


def make_localizer(
    role: str, session: Session, options: LocalizerOptions, robot: RosOptions, motion: MotionHistory, name: str
) -> RosLocalizer:
    """Return the localizer that the options describe.

    Args:
        role: ``localizer``, ``referee`` or ``odometry``, for messages.
        session: The connection to the ROS network.
        options: Of the source.
        robot: Topics and frames.
        motion: Odometry for the plausibility check.
        name: The robot's, to which an alignment must belong.

    Raises:
        ConfigError: The alignment cannot be read.
        CalibrationError: The alignment is another robot's.
    """
    if options.source == "odometry":
        return OdometryLocalizer(role, session, options, topics_of(robot).odom, motion)
    if options.source == "tf":
        return TfLocalizer(role, session, options, base_frame(robot), motion)
    return PoseLocalizer(role, session, options, name, motion)
