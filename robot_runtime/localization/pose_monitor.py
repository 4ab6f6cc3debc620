"""Where the robot is, for an episode: patient with sources that lose it, and telling of all that they say.

While a source has lost the robot or is silent, nothing is observed: the robot stands still, which is the one thing that
is known of it. That is told (``paused``, ``resumed``); after ``patience_s`` the episode ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, DeviceFault, LocalizationLost, StaleData
from robot_runtime.hal import Localizer, LocalizerInfo, PoseEstimate, RgbdFrame, Robot
from robot_runtime.hal.events import Event
from robot_runtime.hal.streams import STREAMS
from robot_runtime.localization.start_pose import mean_pose, require_tracked

PATIENCE_S = 30.0
POLL_S = 0.1

HARMLESS = ("fix", "heading", "regained", "jump_rejected")
"""Kinds of events that are no reason for a robot to be lost."""

OnEvent = Callable[[Event], None]
OnPoses = Callable[[str, tuple[PoseEstimate, ...]], None]


def check_frames(robot: Robot) -> None:
    """Whether episodes know the frames that the localizers report in. Raises ``ConfigError``, naming both."""
    for role, localizer, known in (
        ("localizer", robot.localizer, ("map", "odom")),
        ("referee", robot.referee, ("map",)),
    ):
        info = localizer.info
        if info.frame not in known:
            raise ConfigError(
                f"{role} {info.name!r}: reports in frame {info.frame!r}, not in {' or '.join(known)}",
                "name a source that knows the map, or say in its options where its frame lies there, which "
                "`robot-runtime calibrate localization` finds out",
            )


class PoseMonitor:
    """A robot's localizers during episodes.

    Args:
        on_event, on_poses: who is told (``Subscriber``).
        patience_s: how long a pause may last.
    """

    def __init__(self, robot: Robot, on_event: OnEvent, on_poses: OnPoses, patience_s: float = PATIENCE_S) -> None:
        self._robot = robot
        self._on_event, self._on_poses = on_event, on_poses
        self._patience_s = patience_s
        self._sources = _named(robot)
        self._marks = dict.fromkeys(self._sources, 0)
        self._paused: list[Event] = []
        self.paused_ns = 0
        """How long all pauses so far lasted."""

    def begin(self) -> None:
        """What has arrived so far belongs to no episode, or to another one."""
        self._marks = {name: source.arrivals().mark for name, source in self._sources.items()}
        self._paused.clear()
        self.paused_ns = 0

    def publish(self) -> None:
        """Hand on what has arrived since the last time: events in the order of their stamps, then poses."""
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
        """``mean_pose`` of the policy's localizer. Raises ``LocalizationLost``, ``DeviceFault``."""
        robot = self._robot
        while True:
            with self._patient():
                return mean_pose(robot.clock, robot.localizer, window_s)

    def at(self, frame: RgbdFrame) -> tuple[PoseEstimate, PoseEstimate] | None:
        """The policy's and the referee's pose at a frame's exposure.

        Returns:
            None if the robot was lost then and is found now: the frame is of an instant without a pose.

        Raises:
            LocalizationLost: after waiting for as long as one may.
        """
        robot, max_age_s = self._robot, STREAMS["pose"].max_age_s
        with self._patient():
            pose = require_tracked(robot.localizer, robot.localizer.at(frame.stamp_ns, max_age_s))
            if robot.referee is robot.localizer:
                return pose, pose
            referee = require_tracked(robot.referee, robot.referee.at(frame.stamp_ns, max_age_s))
            return pose, with_heading(robot.referee.info, referee, pose)
        return None

    @contextmanager
    def _patient(self) -> Iterator[None]:
        """Where the robot is lost within, wait until it is found. Raises ``LocalizationLost``."""
        try:
            yield
        except (StaleData, LocalizationLost) as error:
            self._pause(error)

    def _pause(self, reason: StaleData | LocalizationLost) -> None:
        clock = self._robot.clock
        began_ns = clock.now_ns()
        self._say("paused", reason.message)
        while clock.now_ns() - began_ns < seconds_to_ns(self._patience_s):
            clock.sleep(POLL_S)
            if self._found():
                self.paused_ns += clock.now_ns() - began_ns
                self._say("resumed", f"after {ns_to_seconds(clock.now_ns() - began_ns):.1f} s")
                return
        raise LocalizationLost(
            f"{reason.message}; it was not found within {self._patience_s:g} s{self._causes()}", reason.remedy
        ) from reason

    def _causes(self) -> str:
        """What the sources have said lately about why, as the end of a sentence; empty if they said nothing."""
        events = [event for source in self._sources.values() for event in source.arrivals().events]
        last = {e.kind: e for e in sorted(events, key=lambda e: e.stamp_ns) if e.kind not in HARMLESS}
        return "".join(f"; {kind}: {event.detail}" for kind, event in last.items())

    def _found(self) -> bool:
        try:
            for localizer in dict.fromkeys((self._robot.localizer, self._robot.referee)):
                require_tracked(localizer, localizer.latest(STREAMS["pose"].max_age_s))
        except (StaleData, LocalizationLost):
            return False
        return True

    def _say(self, kind: str, detail: str) -> None:
        self._paused.append(Event(self._robot.clock.now_ns(), "env", kind, detail))


def with_heading(info: LocalizerInfo, position: PoseEstimate, pose: PoseEstimate) -> PoseEstimate:
    """base_link of a source that may know positions only: with the heading of another source's pose of that instant.

    The heading's variance stays infinite: it is not the source's own.

    Raises:
        DeviceFault: there is no heading in the map to take.
    """
    if math.isfinite(position.covariance[2, 2]):
        return position
    if pose.frame != position.frame or not math.isfinite(pose.covariance[2, 2]):
        raise DeviceFault(
            f"localizer {info.name!r}: knows positions only, and the policy's localizer no heading in the map",
            "fuse it with odometry: a preset in launch/localizers/ whose name begins with 'fused'",
        )
    mark = SE2(position.pose.x_m, position.pose.y_m, pose.pose.yaw_rad)
    return replace(position, pose=mark @ SE2(-info.mark_m[0], -info.mark_m[1]))


def _named(robot: Robot) -> dict[str, Localizer]:
    """Every localizer of a robot, and those that they are made of, by name; two of one name are numbered."""
    named: dict[str, Localizer] = {}
    waiting: list[Localizer] = [robot.localizer, robot.referee]
    if robot.odometry is not None:
        waiting.append(robot.odometry)
    while waiting:
        source = waiting.pop(0)
        waiting.extend(source.sources)
        if any(source is known for known in named.values()):
            continue
        name, count = source.info.name, 2
        while name in named:
            name, count = f"{source.info.name} {count}", count + 1
        named[name] = source
    return named
