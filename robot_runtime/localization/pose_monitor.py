"""Poses during an episode: pauses while the robot is lost, and publication of all events and poses of the sources.

While a source has lost the robot or is silent, nothing is observed and the robot stands still. This is published as
the events ``paused`` and ``resumed``; after ``patience_s`` the episode ends.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, DeviceFault, LocalizationLost, StaleData
from robot_runtime.hal import Localizer, LocalizerInfo, PoseEstimate, PoseStatus, RgbdFrame, Robot
from robot_runtime.hal.events import Event
from robot_runtime.hal.streams import STREAMS

MIN_POSES = 4
"""Fewer poses do not allow the rejection of outliers."""

OUTLIER = 4.0
"""Largest accepted distance from the median position, in units of the median distance."""

OUTLIER_M = 0.01
"""Distance from the median position that is always accepted."""

GRACE_S = 1.0
"""Time within which a source that was given the robot's pose delivers its first measurement."""

NO_VARIANCE = 1e-6
"""Added to the variance of each position, m², for sources that state none."""


def mean_pose(clock: Clock, localizer: Localizer, window_s: float) -> PoseEstimate:
    """Average the poses measured from now on for ``window_s`` while the robot stands still, in the localizer's frame.

    All arrivals count, not the newest of each poll: on a busy computer they come in pairs. There are at least
    ``MIN_POSES``, however slow the source is, and none from before the source found the robot; that may happen only
    now.

    Raises:
        StaleData: too few poses came within the window, their own periods and the stream's allowed age.
        LocalizationLost: the localizer has lost the robot, and does not find it within a second.
        DeviceFault: it measures no heading.
    """
    max_age_s = STREAMS["pose"].max_age_s
    period_s = 1 / localizer.info.rate_hz
    begin_ns = clock.now_ns()
    deadline_ns = begin_ns + seconds_to_ns(max(window_s, MIN_POSES * period_s) + max_age_s + GRACE_S)
    since_ns, mark = begin_ns, localizer.arrivals().mark
    by_stamp: dict[int, PoseEstimate] = {}
    while len(by_stamp) < MIN_POSES or max(by_stamp) + seconds_to_ns(period_s) <= since_ns + seconds_to_ns(window_s):
        now_ns = clock.now_ns()
        if now_ns > deadline_ns:
            require_tracked(localizer, localizer.latest(max_age_s))  # The error of a silent source is more specific.
            raise StaleData(
                f"localizer {localizer.info.name!r}: only {len(by_stamp)} poses came in "
                f"{ns_to_seconds(now_ns - begin_ns):.1f} s",
                "check that it runs at the rate that it states",
            )
        clock.sleep_until(now_ns + seconds_to_ns(period_s))
        arrived = localizer.arrivals(mark)
        mark = arrived.mark
        if arrived.restarted:
            by_stamp.clear()
        lost = [estimate.stamp_ns for estimate in arrived.estimates if estimate.status is not PoseStatus.OK]
        since_ns = max(since_ns, *lost, begin_ns)
        by_stamp |= {estimate.stamp_ns: estimate for estimate in arrived.estimates}
        by_stamp = {stamp_ns: estimate for stamp_ns, estimate in by_stamp.items() if stamp_ns > since_ns}
    return _mean(localizer, [by_stamp[stamp_ns] for stamp_ns in sorted(by_stamp)])


def require_tracked(localizer: Localizer, estimate: PoseEstimate) -> PoseEstimate:
    """Return the estimate. Raises ``LocalizationLost`` if its status is not ``ok``."""
    if estimate.status is not PoseStatus.OK:
        raise LocalizationLost(
            f"localizer {localizer.info.name!r}: has lost the robot", "move the robot to where it can localize itself"
        )
    return estimate


def _mean(localizer: Localizer, estimates: Sequence[PoseEstimate]) -> PoseEstimate:
    """The mean pose without outliers, and its covariance.

    Poses are weighted by the stated variances; these are larger at the start of a filter. Errors that scatter from pose
    to pose average out; the stated covariance beyond that scatter is common to all poses, as a filter's errors are, and
    stays.
    """
    stated = np.array([estimate.covariance for estimate in estimates])
    if not np.isfinite(stated[:, 2, 2]).all():
        raise DeviceFault(
            f"localizer {localizer.info.name!r}: measures positions only, and policies need headings",
            "fuse it with odometry: use a preset in launch/localizers/ whose name begins with 'fused'",
        )
    poses = np.array([(estimate.pose.x_m, estimate.pose.y_m, estimate.pose.yaw_rad) for estimate in estimates])
    reference = poses[0, 2]
    poses[:, 2] = np.remainder(poses[:, 2] - reference + math.pi, 2 * math.pi) - math.pi
    distances_m = np.hypot(*(poses[:, :2] - np.median(poses[:, :2], axis=0)).T)
    good = distances_m <= max(OUTLIER * float(np.median(distances_m)), OUTLIER_M)
    poses, stated = poses[good], stated[good]
    weights = 1 / (np.maximum(stated[:, 0, 0], stated[:, 1, 1]) + NO_VARIANCE)
    weights /= weights.sum()
    x_m, y_m, turn_rad = (weights @ poses).tolist()
    scatter = np.cov(poses.T, aweights=weights)
    covariance = _positive(np.tensordot(weights, stated, 1) - scatter) + scatter * float(weights @ weights)
    last = estimates[-1]
    return PoseEstimate(last.stamp_ns, SE2(x_m, y_m, reference + turn_rad), last.frame, covariance)


def _positive(symmetric: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(symmetric)
    result: NDArray[np.float64] = (vectors * np.maximum(values, 0)) @ vectors.T
    return result


PATIENCE_S = 30.0
POLL_S = 0.1

HARMLESS = ("fix", "heading", "regained", "jump_rejected")
"""Kinds of events that do not explain why a robot is lost."""

OnEvent = Callable[[Event], None]
OnPoses = Callable[[str, tuple[PoseEstimate, ...]], None]


def check_frames(robot: Robot) -> None:
    """Raise ``ConfigError`` unless episodes can use the frames that the localizers report in."""
    for role, localizer, known in (
        ("localizer", robot.localizer, ("map", "odom")),
        ("referee", robot.referee, ("map",)),
    ):
        info = localizer.info
        if info.frame not in known:
            raise ConfigError(
                f"{role} {info.name!r}: reports in frame {info.frame!r}, not in {' or '.join(known)}",
                "name a source that reports in the map, or state the transform of its frame in its options, which "
                "`robot-runtime calibrate localization` measures",
            )


class PoseMonitor:
    """A robot's localizers during episodes.

    Args:
        robot: robot with the localizers.
        on_event: called with each event (``Subscriber``).
        on_poses: called with the name of a source and its new poses.
        patience_s: longest pause.
    """

    def __init__(self, robot: Robot, on_event: OnEvent, on_poses: OnPoses, patience_s: float = PATIENCE_S) -> None:
        self._robot = robot
        self._on_event, self._on_poses = on_event, on_poses
        self._patience_s = patience_s
        self._sources = _sources_by_name(robot)
        self._marks = dict.fromkeys(self._sources, 0)
        self._paused: list[Event] = []
        self.paused_ns = 0
        """Duration of all pauses since :meth:`begin`."""

    def begin(self) -> None:
        """Start an episode: ignore everything that has arrived so far."""
        self._marks = {name: source.arrivals().mark for name, source in self._sources.items()}
        self._paused.clear()
        self.paused_ns = 0

    def publish(self) -> None:
        """Publish the arrivals since the last call: events in the order of their stamps, then poses."""
        events, self._paused = self._paused, []
        poses = []
        try:
            for name, source in self._sources.items():
                arrived = source.arrivals(self._marks[name])
                self._marks[name] = arrived.mark
                events.extend(arrived.events)
                poses.append((name, arrived.estimates))
        finally:
            for event in sorted(events, key=lambda event: event.stamp_ns):
                self._on_event(event)
        for name, estimates in poses:
            if estimates:
                self._on_poses(name, estimates)

    def origin(self, window_s: float) -> PoseEstimate:
        """``mean_pose`` of the policy's localizer, waiting while the robot is lost.

        Args:
            window_s: duration of averaging.

        Raises:
            LocalizationLost: the pause was too long.
            DeviceFault: the localizer has no heading.
        """
        robot = self._robot
        while True:
            with self._waiting_while_lost():
                return mean_pose(robot.clock, robot.localizer, window_s)

    def at(self, frame: RgbdFrame) -> tuple[PoseEstimate, PoseEstimate] | None:
        """The policy's and the referee's pose at a frame's exposure.

        Returns:
            None if the robot was lost then and is tracked now, so that the frame has no pose.

        Raises:
            LocalizationLost: the pause was too long.
        """
        robot, max_age_s = self._robot, STREAMS["pose"].max_age_s
        with self._waiting_while_lost():
            pose = require_tracked(robot.localizer, robot.localizer.at(frame.stamp_ns, max_age_s))
            if robot.referee is robot.localizer:
                return pose, pose
            referee = require_tracked(robot.referee, robot.referee.at(frame.stamp_ns, max_age_s))
            return pose, with_heading(robot.referee.info, referee, pose)
        return None

    @contextmanager
    def _waiting_while_lost(self) -> Iterator[None]:
        """On ``StaleData`` or ``LocalizationLost`` in the block, wait until the robot is tracked.

        Raises ``LocalizationLost``.
        """
        try:
            yield
        except (StaleData, LocalizationLost) as error:
            self._pause(error)

    def _pause(self, reason: StaleData | LocalizationLost) -> None:
        clock = self._robot.clock
        began_ns = clock.now_ns()
        self._report("paused", reason.message)
        while clock.now_ns() - began_ns < seconds_to_ns(self._patience_s):
            clock.sleep(POLL_S)
            if self._is_tracked():
                self.paused_ns += clock.now_ns() - began_ns
                self._report("resumed", f"after {ns_to_seconds(clock.now_ns() - began_ns):.1f} s")
                return
        raise LocalizationLost(
            f"{reason.message}; it was not found within {self._patience_s:g} s{self._recent_problems()}", reason.remedy
        ) from reason

    def _recent_problems(self) -> str:
        """The sources' latest events as the end of a sentence; empty if there are none."""
        events = [event for source in self._sources.values() for event in source.arrivals().events]
        last = {e.kind: e for e in sorted(events, key=lambda e: e.stamp_ns) if e.kind not in HARMLESS}
        return "".join(f"; {kind}: {event.detail}" for kind, event in last.items())

    def _is_tracked(self) -> bool:
        try:
            for localizer in dict.fromkeys((self._robot.localizer, self._robot.referee)):
                require_tracked(localizer, localizer.latest(STREAMS["pose"].max_age_s))
        except (StaleData, LocalizationLost):
            return False
        return True

    def _report(self, kind: str, detail: str) -> None:
        self._paused.append(Event(self._robot.clock.now_ns(), "env", kind, detail))


def with_heading(info: LocalizerInfo, position: PoseEstimate, pose: PoseEstimate) -> PoseEstimate:
    """base_link by a source that may measure positions only, with the heading of another source's pose of that instant.

    The variance of the heading stays infinite, because it is not the source's own.

    Args:
        info: description of the source.
        position: its estimate, of the measured point if the heading's variance is infinite.
        pose: the other source's estimate.

    Raises:
        DeviceFault: ``pose`` has no heading in the same frame.
    """
    if math.isfinite(position.covariance[2, 2]):
        return position
    if pose.frame != position.frame or not math.isfinite(pose.covariance[2, 2]):
        raise DeviceFault(
            f"localizer {info.name!r}: measures positions only, and the policy's localizer has no heading in the map",
            "fuse it with odometry: use a preset in launch/localizers/ whose name begins with 'fused'",
        )
    mark = SE2(position.pose.x_m, position.pose.y_m, pose.pose.yaw_rad)
    return replace(position, pose=mark @ SE2(-info.mark_m[0], -info.mark_m[1]))


def _sources_by_name(robot: Robot) -> dict[str, Localizer]:
    """Every localizer of a robot and its own sources, by name; further ones of the same name are numbered."""
    named: dict[str, Localizer] = {}
    queue: list[Localizer] = [robot.localizer, robot.referee]
    if robot.odometry is not None:
        queue.append(robot.odometry)
    while queue:
        source = queue.pop(0)
        queue.extend(source.sources)
        if any(source is known for known in named.values()):
            continue
        name, count = source.info.name, 2
        while name in named:
            name, count = f"{source.info.name} {count}", count + 1
        named[name] = source
    return named
