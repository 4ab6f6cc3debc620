"""Where the robot is, from its odometry and a source that knows the map: late, noisy, patchy, at times plainly wrong.

::

    name: fused-marvelmind                                       # launch/localizers/
    driver: robot_runtime.localization.fused.make_localizer
    options:
      absolute: {driver: drivers.marvelmind.driver.make_localizer, options: {port: /dev/marvelmind}}

Nothing runs by itself: each call takes in what has arrived from both sources since the one before, folds it in
(``localization.ekf``) and publishes a pose for every new sample of odometry. What was published stays: later knowledge
only moves what comes after, smoothly (``localization.blend``).

A published pose says that the robot is lost when the source has been silent or refused for too long, when all of its
measurements contradict odometry, or when the uncertainty has grown too large. Both that and what
``localization.health`` finds are told as events.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_runtime.common import config
from robot_runtime.common.clock import Clock, ns_to_seconds
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, NotConnected, StaleData
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseStatus, Robot
from robot_runtime.hal.events import Event
from robot_runtime.hal.pose_history import PoseHistory, pose_at
from robot_runtime.localization.ekf import PoseFilter, Verdict
from robot_runtime.localization.gaussian_pose import Belief, Measurement, covariance_of, whitening
from robot_runtime.localization.health import Bounds, HealthLimits, SourceHealth
from robot_runtime.localization.odometry_preintegration import OdometryNoise
from robot_runtime.localization.output_smoothing import OutputSmoother, SmoothingLimits
from robot_runtime.localization.relocalization import RelocalizationLimits
from robot_runtime.robots.loader import DeviceConfig, RobotContext, make_device

POLL_S = 0.02


@dataclass(frozen=True)
class FusedOptions:
    """The ``options`` of a fused localizer.

    Attributes:
        absolute: the source that knows the map; None for the robot's own localizer.
        noise: of odometry. floor_m, floor_deg: added to what the source says of its own noise, which may be nothing.
        history_s: how late a measurement may come.
        max_std_m, max_std_deg: standard deviations beyond which the robot is lost.
        lost_after_s: without a measurement that fits, the robot is lost after so long; dead reckoning bridges less.
        doubt_s: for how long all measurements may contradict odometry until the robot is lost.
        anchor: when measurements that contradict odometry replace what was believed.
        health: when the source is doubted. blend: how corrections are taken over.
    """

    absolute: DeviceConfig | None = None
    noise: OdometryNoise = field(default_factory=OdometryNoise)
    floor_m: float = 0.005
    floor_deg: float = 0.3
    history_s: float = 5.0
    max_std_m: float = 0.25
    max_std_deg: float = 15.0
    lost_after_s: float = 5.0
    doubt_s: float = 1.0
    anchor: RelocalizationLimits = field(default_factory=RelocalizationLimits)
    health: HealthLimits = field(default_factory=HealthLimits)
    blend: SmoothingLimits = field(default_factory=SmoothingLimits)

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        for name in ("floor_m", "floor_deg", "max_std_m", "max_std_deg", "lost_after_s", "doubt_s"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a positive number, got {getattr(self, name)}")
        if self.history_s < 2:
            raise ValueError(f"history_s must be at least 2, got {self.history_s}")


def make_localizer(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Localizer:
    """A fused localizer over ``robot.odometry``, disconnected.

    Raises:
        ConfigError: a bad option, a robot without odometry, or a source that does not know the map.
    """
    chosen = config.parse(dict(options), FusedOptions, where)
    if robot.odometry is None:
        raise ConfigError(
            f"{where}: robot {robot.name!r} has no odometry to fuse with", "name a robot whose driver reports it"
        )
    absolute = robot.localizer
    if chosen.absolute is not None:
        absolute = make_device(chosen.absolute, Localizer, robot, context, f"{where}.absolute")
    if absolute.info.frame != "map":
        raise ConfigError(
            f"{where}: {absolute.info.name!r} reports in {absolute.info.frame!r}, not in the map",
            "name an 'absolute' source that knows the map",
        )
    return FusedLocalizer(robot.clock, robot.odometry, absolute, chosen, _bounds(context))


def _bounds(context: RobotContext) -> Bounds | None:
    if context.scene is None:
        return None
    area = context.scene.map
    width_m, height_m = area.size_m
    return area.origin_x_m, area.origin_y_m, area.origin_x_m + width_m, area.origin_y_m + height_m


class FusedLocalizer(Localizer):
    """Poses in ``map`` at odometry's rate and stamps. Connects and closes its sources with itself.

    Args:
        odometry: in ``odom``. absolute: in ``map``.
        bounds: of the map, for ``localization.health``; None if it is not known.
    """

    def __init__(
        self,
        clock: Clock,
        odometry: Localizer,
        absolute: Localizer,
        options: FusedOptions | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._clock, self._odometry, self._absolute = clock, odometry, absolute
        self._options = options = options or FusedOptions()
        name = f"fused {absolute.info.name}"
        self._info = LocalizerInfo(name, absolute.info.frame, odometry.info.rate_hz)
        self._health = SourceHealth(absolute.info.name, options.health, bounds)
        self._odometry_health = SourceHealth(odometry.info.name, options.health)
        self._filter = PoseFilter(options.noise, options.anchor, options.history_s, self._health.admit)
        self._blend = OutputSmoother(options.blend)
        self._history = PoseHistory(name, self._info.frame)
        self._lock = threading.RLock()
        self._connected = False
        self._marks = (0, 0)
        self._begin()

    @property
    def info(self) -> LocalizerInfo:
        return self._info

    @property
    def sources(self) -> tuple[Localizer, ...]:
        return (self._odometry, self._absolute)

    def connect(self) -> None:
        if self._connected:
            return
        self._odometry.connect()
        try:
            self._absolute.connect()
        except BaseException:
            self._odometry.close()
            raise
        with self._lock:
            self._marks = (self._odometry.arrivals().mark, self._absolute.arrivals().mark)
            self._begin()
            self._connected = True

    def close(self) -> None:
        self._connected = False
        self._absolute.close()
        self._odometry.close()

    def latest(self, max_age_s: float) -> PoseEstimate:
        with self._lock:
            self._pull()
            try:
                return self._history.latest(self._clock.now_ns, max_age_s)
            except StaleData as error:
                raise self._explained(error) from error

    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        with self._lock:
            try:
                return pose_at(self._history, self._clock, stamp_ns, timeout_s, POLL_S, self._pull)
            except StaleData as error:
                raise self._explained(error) from error

    def arrivals(self, after: int = 0) -> Arrivals:
        with self._lock:
            self._pull()
            return self._history.arrivals(after)

    def expect(self, pose: SE2, std_m: float, std_rad: float) -> None:
        self._absolute.expect(pose, std_m, std_rad)
        with self._lock:
            self._pull()
            self._begin_at((pose, std_m, std_rad))

    # --- what has arrived -------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Nothing is known any more."""
        self._filter.clear()
        self._odometry_health.clear()
        self._expected: tuple[SE2, float, float] | None = None
        self._begin_publishing()
        self._whitened: tuple[object, tuple[float, ...]] = (None, ())

    def _begin_publishing(self) -> None:
        """What was published belongs to another place."""
        self._health.clear()
        self._blend.reset()
        self._history.clear()
        self._published_ns: int | None = None
        self._trouble = ""
        """Why the robot is lost; empty while it is not."""
        self._known = False
        """Whether it was ever not lost here."""

    def _begin_at(self, expected: tuple[SE2, float, float]) -> None:
        stamp_ns = self._filter.track.newest_ns
        if stamp_ns is None:
            self._expected = expected  # for the first sample of odometry
            return
        self._expected = None
        self._filter.begin(stamp_ns, *expected)
        self._begin_publishing()
        self._publish(stamp_ns)

    def _pull(self) -> None:
        """Take in what has arrived since the last time."""
        if not self._connected:
            raise NotConnected(f"localizer {self._info.name!r}: is not connected", "call connect() before using it")
        odometry = self._odometry.arrivals(self._marks[0])
        absolute = self._absolute.arrivals(self._marks[1])
        self._marks = (odometry.mark, absolute.mark)
        if odometry.restarted or absolute.restarted:
            track = self._odometry.arrivals().estimates if not odometry.restarted else odometry.estimates
            self._begin()
        else:
            track = odometry.estimates
        for sample in track:
            if self._odometry_health.arrives(sample, None):
                self._filter.odometry(sample.stamp_ns, sample.pose)
        if self._expected is not None and track:
            self._begin_at(self._expected)
        for estimate in absolute.estimates:
            self._measure(estimate)
        self._tell()
        for sample in track:
            if self._published_ns is None or sample.stamp_ns > self._published_ns:
                self._publish(sample.stamp_ns)

    def _measure(self, estimate: PoseEstimate) -> None:
        if not self._health.arrives(estimate, self._filter.track.newest_ns):
            return
        if estimate.covariance is not self._whitened[0]:
            options = self._options
            try:
                weights = whitening(estimate.covariance, options.floor_m, math.radians(options.floor_deg))
            except ValueError as error:
                self._health.refuse(estimate.stamp_ns, "bad_covariance", str(error))
                return
            self._whitened = estimate.covariance, weights
        weights, pose = self._whitened[1], estimate.pose
        mark_m = self._absolute.info.mark_m if len(weights) == 3 else (0.0, 0.0)
        self._filter.measure(Measurement(estimate.stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad, weights, mark_m))

    def _tell(self) -> None:
        """Events of what was folded in."""
        for event in self._odometry_health.events():
            self._history.report(event)
        for event in self._health.events():
            self._history.report(event)
            if event.kind == "frozen" and self._health.frozen_since_ns is not None:
                self._filter.retract(self._health.frozen_since_ns + 1, event.stamp_ns)
        for node in self._filter.news():
            if node.verdict is Verdict.RELOCALIZED and node.shift_m:
                detail = (
                    f"measurements agree with each other {node.shift_m:.2f} m from where odometry has the robot: an "
                    "anchor was moved, or the robot was carried; from here on they are believed"
                )
                self._event(node.stamp_ns, "anchor_moved", detail)
                self._health.moved()
                self._blend.reset()
            elif (
                node.verdict is Verdict.REJECTED and node.run == 1 and node.belief is not None and node.fix is not None
            ):
                off_m = math.hypot(node.fix.x_m - node.belief[0], node.fix.y_m - node.belief[1])
                self._event(node.stamp_ns, "jump_rejected", f"a measurement lies {off_m:.2f} m off")

    def _event(self, stamp_ns: int, kind: str, detail: str) -> None:
        self._history.report(Event(stamp_ns, self._info.name, kind, detail))

    # --- what is published ------------------------------------------------------------------------------------------

    def _publish(self, stamp_ns: int) -> None:
        belief, waypoint = self._filter.estimate(stamp_ns), self._filter.track.at(stamp_ns)
        if belief is None or waypoint is None:
            return
        trouble = self._judge(stamp_ns, belief)
        elapsed_s = 0.0 if self._published_ns is None else ns_to_seconds(stamp_ns - self._published_ns)
        pose, rest = self._blend.step(belief, waypoint, elapsed_s)
        left = np.array((rest.x_m, rest.y_m, rest.yaw_rad))
        status = PoseStatus.LOST if trouble else PoseStatus.OK
        covariance = covariance_of(belief) + np.outer(left, left)
        if trouble and self._known and not self._trouble:
            self._event(stamp_ns, "lost", trouble)
        elif self._trouble and self._known and not trouble:
            self._event(stamp_ns, "regained", "measurements and odometry agree")
            self._blend.reset()
        self._trouble, self._published_ns, self._known = trouble, stamp_ns, self._known or not trouble
        self._history.add(PoseEstimate(stamp_ns, pose, self._info.frame, covariance, status))

    def _judge(self, stamp_ns: int, belief: Belief) -> str:
        """Why the robot is lost at an instant; empty if it is not."""
        options, source = self._options, self._absolute.info.name
        if self._health.broken:
            return f"{source}: {self._health.broken}"
        node = self._filter.node_at(stamp_ns)
        if node is None or node.agreed_ns is None or not node.measured:
            return f"{source} has measured nothing that tells where the robot is"
        contradicted_s = self._filter.contradicted_s(node)
        if contradicted_s > options.doubt_s:
            return f"{source} and odometry have contradicted each other for {contradicted_s:.1f} s"
        silent_s = ns_to_seconds(stamp_ns - node.agreed_ns)
        if silent_s > options.lost_after_s:
            return f"{source} has measured nothing that fits for {silent_s:.1f} s"
        std_m, std_deg = math.sqrt(max(belief[3], belief[6])), math.degrees(math.sqrt(belief[8]))
        if std_m > options.max_std_m or std_deg > options.max_std_deg:
            return f"it is unsure by {std_m:.2f} m and {std_deg:.0f} degrees (one standard deviation)"
        return ""

    def _explained(self, error: StaleData) -> StaleData:
        trouble = self._health.broken or self._trouble
        if not trouble and not self._filter.initialized:
            count = len(self._filter.nodes)
            what = "not told yet where the robot is and where it faces" if count else "measured nothing yet"
            trouble = f"{self._absolute.info.name} has {what} ({count} measurements)"
        if not trouble:
            return error
        return StaleData(
            f"{error.message}: {trouble}", "bring the robot where its source sees it, and drive it half a meter"
        )
