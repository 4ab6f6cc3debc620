"""Localizers over ROS topics: the base's odometry, tf, PoseStamped, PoseWithCovarianceStamped."""

import threading

import numpy as np

from drivers.ros.connection.received import Received
from drivers.ros.connection.session import Session
from drivers.ros.device import RosDevice
from drivers.ros.localizer.alignment import aligned, read_alignment
from drivers.ros.localizer.messages import check_pose_frame, odometry_pose, planar_covariance, planar_pose
from drivers.ros.localizer.transform_chain import TransformChain
from drivers.ros.options import LocalizerOptions, RobotOptions
from drivers.ros.robot_variants import base_frame, topics_of
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import StaleData
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.hal.events import Event
from robot_runtime.hal.pose_history import PoseHistory, pose_at

POLL_S = 0.005
TF_QUEUE_SIZE = 100
"""``/tf`` carries every joint and frame of the robot; no message may be dropped."""


class RosLocalizer(RosDevice, Localizer):
    """The common part of all sources: history, and errors that name the topic.

    A pose that its message declares as lost, or that no robot on a floor can have, has the status ``lost``. Checks
    against odometry are those of all localizers (``robots.checked_localizer``).

    Args:
        role: ``localizer``, ``referee`` or ``odometry``, for messages.
        session: The connection to the ROS network.
        options: Of the source.
        frame: Of its poses.
        topic: For messages.
    """

    def __init__(self, role: str, session: Session, options: LocalizerOptions, frame: str, topic: str) -> None:
        super().__init__(role, session)
        self._options = options
        self._source = self._cache(topic)
        self._info = LocalizerInfo(f"{role} on {topic}", frame, options.rate_hz, limits=options.limits)
        self._history = PoseHistory(self._info.name, frame, max_gap_s=options.max_gap_s)
        self._lost = ""
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
            self._lost = ""

    def _closed(self) -> None:
        self.forget()

    def _is_current(self, estimate: PoseEstimate) -> bool:
        """Whether an estimate belongs to the robot's present place; call it under the lock."""
        return not self._paused and estimate.stamp_ns >= self._since_ns

    def _take(self, estimate: PoseEstimate, lost: str = "") -> None:
        """Add an estimate to the history.

        Args:
            estimate: The estimate; where the robot is lost, its pose is ignored.
            lost: Why the robot is lost; empty if it is not.
        """
        with self._lock:
            if not self._is_current(estimate):
                return
            if lost:
                newest = self._history.newest()
                pose = SE2() if newest is None else newest.pose
                estimate = PoseEstimate(estimate.stamp_ns, pose, estimate.frame, status=PoseStatus.LOST)
            if bool(lost) != bool(self._lost):
                detail = f"topic {self._source.topic}: {lost or 'tracks the robot again'}"
                self._history.report(Event(estimate.stamp_ns, self._info.name, "no_fix" if lost else "fix", detail))
            self._lost = lost
            self._history.add(estimate)


class OdometryLocalizer(RosLocalizer):
    """The base's dead reckoning in ``odom``."""

    def __init__(self, role: str, session: Session, options: LocalizerOptions, topic: str) -> None:
        super().__init__(role, session, options, "odom", topic)

    def _opened(self) -> None:
        self._endpoints.append(self._session.subscribe(self._source.topic, "nav_msgs/Odometry", self._on_message))

    def _on_message(self, received: Received) -> None:
        pose, why = odometry_pose(received.message)
        if why:
            self._source.lose(why)
        elif (taken := self._source.receive(received)) is not None:
            covariance = planar_covariance(received.message.pose.covariance)
            self._take(PoseEstimate(taken.stamp_ns, pose, "odom", covariance))


class PoseLocalizer(RosLocalizer):
    """PoseStamped or PoseWithCovarianceStamped in the map's frame, or in one that an alignment transforms to it."""

    def __init__(self, role: str, session: Session, options: LocalizerOptions, robot: str) -> None:
        super().__init__(role, session, options, "map", options.topic)
        self._with_covariance = options.source == "pose_with_covariance"
        self._alignment = read_alignment(options.alignment, robot) if options.alignment else None

    def _opened(self) -> None:
        kind = "PoseWithCovarianceStamped" if self._with_covariance else "PoseStamped"
        self._endpoints.append(self._session.subscribe(self._source.topic, f"geometry_msgs/{kind}", self._on_message))

    def _on_message(self, received: Received) -> None:
        message = received.message
        check_pose_frame(message.header.frame_id, self._options)
        taken = self._source.receive(received)
        if taken is None:
            return
        covariance = np.zeros((3, 3))
        pose = message.pose
        if self._with_covariance:
            pose, covariance = message.pose.pose, planar_covariance(message.pose.covariance)
        on_floor, why = planar_pose(pose)
        estimate = PoseEstimate(taken.stamp_ns, on_floor, "map", covariance)
        self._take(estimate if self._alignment is None or why else aligned(estimate, self._alignment), why)


class TfLocalizer(RosLocalizer):
    """The transform from the map to the base at the newest instant at which the complete chain is known.

    When a broadcaster dies, that instant stays, and the pose becomes stale. A broadcaster that dates its transforms
    forward (AMCL) changes nothing, because the rest of the chain is not known yet.
    """

    def __init__(self, role: str, session: Session, options: LocalizerOptions, base: str) -> None:
        self._base = options.base_frame or base
        super().__init__(role, session, options, "map", f"/tf ({options.map_frame} to {self._base})")
        self._chain = TransformChain(options.map_frame, self._base)
        self._newest_ns = 0

    def _opened(self) -> None:
        session = self._session
        self._chain.clear()
        self._newest_ns = 0
        for topic, receive in (("/tf_static", self._on_static), ("/tf", self._on_transforms)):
            moving = topic == "/tf"
            self._endpoints.append(
                session.subscribe(topic, "tf2_msgs/TFMessage", receive, TF_QUEUE_SIZE, required=moving)
            )

    def _on_static(self, received: Received) -> None:
        self._chain.add(received, is_static=True)

    def _on_transforms(self, received: Received) -> None:
        self._chain.add(received)
        newest = self._chain.newest()
        if newest is None:
            return  # The chain is not complete yet: latest() reports that.
        stamp_ns, pose, why = newest
        if stamp_ns <= self._newest_ns or self._source.receive(Received(None, stamp_ns)) is None:
            return
        self._newest_ns = stamp_ns
        self._take(PoseEstimate(stamp_ns, pose, "map"), why)


def make_localizer(
    role: str, session: Session, options: LocalizerOptions, robot: RobotOptions, name: str
) -> RosLocalizer:
    """Return the localizer that the options describe.

    Args:
        role: ``localizer``, ``referee`` or ``odometry``, for messages.
        session: The connection to the ROS network.
        options: Of the source.
        robot: Topics and frames.
        name: The robot's, to which an alignment must belong.

    Raises:
        ConfigError: The alignment cannot be read.
        CalibrationError: The alignment is another robot's.
    """
    if options.source == "odometry":
        return OdometryLocalizer(role, session, options, topics_of(robot).odom)
    if options.source == "tf":
        return TfLocalizer(role, session, options, base_frame(robot))
    return PoseLocalizer(role, session, options, name)
