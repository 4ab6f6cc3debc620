"""Localizer that fuses odometry with an absolute source that may be late, noisy, intermittent or wrong.

::

    name: fused-marvelmind                                       # launch/localizers/
    driver: robot_runtime.localization.fused.make_localizer
    options:
      absolute: {driver: drivers.marvelmind.driver.make_localizer, options: {port: /dev/marvelmind}}

There is no thread: each call processes the arrivals of both sources since the last one (``localization.ekf``) and
publishes a pose for every new sample of odometry. Published poses never change; later measurements only move the poses
that follow, smoothly (:class:`OutputSmoother`).

A pose has the status ``lost`` if no measurement was accepted for too long, if all measurements contradict odometry, or
if its standard deviation is too large. This and the findings of ``hal.pose_health`` are reported as events.
"""

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import override

from robot_runtime.common import config
from robot_runtime.common.clock import Clock, ns_to_seconds
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.quantities import AngleSpread, ShortTime, SmallMove, Spread, Timeout
from robot_runtime.errors import ConfigError, NotConnected, StaleData
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseStatus, Robot
from robot_runtime.hal.events import Event
from robot_runtime.hal.pose_health import Bounds, HealthLimits, MeasuredPoint, SourceHealth
from robot_runtime.hal.pose_history import PoseHistory, pose_at
from robot_runtime.localization.ekf import Decision, PoseFilter
from robot_runtime.localization.gaussian_pose import Belief, Measurement, covariance_of, whitening
from robot_runtime.localization.odometry_preintegration import OdometryNoise, OdometrySample
from robot_runtime.localization.relocalization import RelocalizationLimits
from robot_runtime.robots.checked_localizer import CheckedLocalizer, map_bounds
from robot_runtime.robots.loader import DeviceConfig, RobotContext, make_device


@dataclass(frozen=True)
class SmoothingLimits(config.Strict):
    """Rates at which corrections are applied.

    Attributes:
        tau_s: time constant, after which 63 % of a correction is applied.
        max_step_m: largest correction between two published poses.
        max_step_deg: largest correction of the heading between two published poses.
    """

    tau_s: ShortTime = 0.1
    max_step_m: SmallMove = 0.03
    max_step_deg: float = 2.0

    def __post_init__(self) -> None:
        config.check_positive(self)


class OutputSmoother:
    """First-order lag on the difference between the published pose and the filter's: no jumps, as in simulators.

    Each correction decays by exp(-dt / tau), with a limited step. The offset that remains is part of the published
    covariance.
    """

    def __init__(self, limits: SmoothingLimits) -> None:
        self._limits = limits
        self._last: tuple[SE2, OdometrySample] | None = None

    def reset(self) -> None:
        """Publish the filter's own pose next, without a transition."""
        self._last = None

    def step(self, belief: Belief, sample: OdometrySample, elapsed_s: float) -> tuple[SE2, SE2]:
        """Compute the pose to publish.

        Returns:
            The pose and the remaining correction along the axes of ``map``.
        """
        if self._last is None:
            pose, rest = SE2(belief[0], belief[1], wrap_angle(belief[2])), SE2()
        else:
            moved = _moved(*self._last, sample)
            dx, dy = belief[0] - moved.x_m, belief[1] - moved.y_m
            turn = wrap_angle(belief[2] - moved.yaw_rad)
            part = 1 - math.exp(-elapsed_s / self._limits.tau_s)
            distance_m = math.hypot(dx, dy)
            f = min(part, self._limits.max_step_m / distance_m) if distance_m else 0.0
            g = min(part, math.radians(self._limits.max_step_deg) / abs(turn)) if turn else 0.0
            pose = SE2(moved.x_m + f * dx, moved.y_m + f * dy, wrap_angle(moved.yaw_rad + g * turn))
            rest = SE2((1 - f) * dx, (1 - f) * dy, (1 - g) * turn)
        self._last = pose, sample
        return pose, rest


def _moved(pose: SE2, a: OdometrySample, b: OdometrySample) -> SE2:
    """A pose moved as odometry moved from ``a`` to ``b``."""
    c, s = math.cos(pose.yaw_rad - a[2]), math.sin(pose.yaw_rad - a[2])
    dx, dy = b[0] - a[0], b[1] - a[1]
    return SE2(pose.x_m + c * dx - s * dy, pose.y_m + s * dx + c * dy, pose.yaw_rad + b[2] - a[2])


POLL_S = 0.02


@dataclass(frozen=True)
class FusedOptions(config.Strict):
    """The ``options`` of a fused localizer.

    Attributes:
        absolute: the source that measures in ``map``; None for the robot's own localizer.
        noise: noise of odometry.
        floor_m: standard deviation added to the source's own; that one may be zero.
        floor_deg: standard deviation added to the source's own heading.
        history_s: largest delay of a measurement.
        max_std_m: standard deviation beyond which the robot is lost.
        max_std_deg: standard deviation of the heading beyond which the robot is lost.
        lost_after_s: time without an accepted measurement after which the robot is lost.
        doubt_s: time of contradicting measurements after which the robot is lost.
        anchor: when contradicting measurements replace the belief.
        health: limits of the source's checks.
        blend: how corrections are applied to the output.
    """

    absolute: DeviceConfig | None = None
    noise: OdometryNoise = field(default_factory=OdometryNoise)
    floor_m: Spread = 0.005
    floor_deg: AngleSpread = 0.3
    history_s: ShortTime = 5.0
    max_std_m: Spread = 0.25
    max_std_deg: float = 15.0
    lost_after_s: Timeout = 5.0
    doubt_s: ShortTime = 1.0
    anchor: RelocalizationLimits = field(default_factory=RelocalizationLimits)
    health: HealthLimits = field(default_factory=HealthLimits)
    blend: SmoothingLimits = field(default_factory=SmoothingLimits)

    def __post_init__(self) -> None:
        config.check_positive(self, "floor_m", "floor_deg", "max_std_m", "max_std_deg", "lost_after_s", "doubt_s")
        if self.history_s < 2:
            raise ValueError(f"history_s must be at least 2, got {self.history_s}")


def make_localizer(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Localizer:
    """A fused localizer over ``robot.odometry``, disconnected.

    Raises:
        ConfigError: a bad option, a robot without odometry, or a source that does not report in ``map``.
    """
    chosen = config.parse(dict(options), FusedOptions, where)
    if robot.odometry is None:
        raise ConfigError(
            f"{where}: robot {robot.name!r} has no odometry to fuse with", "use a robot whose driver reports odometry"
        )
    absolute = robot.localizer
    if chosen.absolute is not None:
        absolute = make_device(chosen.absolute, Localizer, robot, context, f"{where}.absolute")
    if isinstance(absolute, CheckedLocalizer):
        absolute = absolute.source  # a fusion has its own checks of jumps
    if absolute.info.frame != "map":
        raise ConfigError(
            f"{where}: {absolute.info.name!r} reports in {absolute.info.frame!r}, not in the map",
            "name an 'absolute' source that knows the map",
        )
    return FusedLocalizer(robot.clock, robot.odometry, absolute, chosen, map_bounds(context.scene))


class FusedLocalizer(Localizer):
    """Poses in ``map`` at odometry's rate and stamps. Connects and closes its sources with itself."""

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
        self._filter = PoseFilter(options.noise, options.anchor, options.history_s, self._admit)
        self._smoother = OutputSmoother(options.blend)
        self._history = PoseHistory(name, self._info.frame)
        self._lock = threading.RLock()
        self._connected = False
        self._cursors = (0, 0)
        self._reset()

    @property
    @override
    def info(self) -> LocalizerInfo:
        return self._info

    @property
    @override
    def sources(self) -> tuple[Localizer, ...]:
        return (self._odometry, self._absolute)

    @override
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
            self._cursors = (self._odometry.arrivals().mark, self._absolute.arrivals().mark)
            self._reset()
            self._connected = True

    @override
    def close(self) -> None:
        self._connected = False
        self._absolute.close()
        self._odometry.close()

    @override
    def latest(self, max_age_s: float) -> PoseEstimate:
        with self._lock:
            self._take_arrivals()
            try:
                return self._history.latest(self._clock.now_ns, max_age_s)
            except StaleData as error:
                raise self._with_reason(error) from error

    @override
    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        with self._lock:
            try:
                return pose_at(self._history, self._clock, stamp_ns, timeout_s, POLL_S, self._take_arrivals)
            except StaleData as error:
                raise self._with_reason(error) from error

    @override
    def arrivals(self, after: int = 0) -> Arrivals:
        with self._lock:
            self._take_arrivals()
            return self._history.arrivals(after)

    @override
    def expect(self, pose: SE2, std_m: float, std_rad: float) -> None:
        self._absolute.expect(pose, std_m, std_rad)
        with self._lock:
            self._take_arrivals()
            self._initialize((pose, std_m, std_rad))

    # --- input ------------------------------------------------------------------------------------------------------

    def _reset(self) -> None:

        self._filter.clear()
        self._odometry_health.clear()
        self._expected: tuple[SE2, float, float] | None = None
        self._reset_output()
        self._whitened: tuple[object, tuple[float, ...]] = (None, ())

    def _reset_output(self) -> None:

        self._health.clear()
        self._smoother.reset()
        self._history.clear()
        self._published_ns: int | None = None
        self._lost_reason = ""
        self._was_tracked = False
        """Whether the robot was tracked since the last reset."""

    def _initialize(self, expected: tuple[SE2, float, float]) -> None:
        stamp_ns = self._filter.preintegration.newest_ns
        if stamp_ns is None:
            self._expected = expected  # for the first sample of odometry
            return
        self._expected = None
        self._filter.initialize(stamp_ns, *expected)
        self._reset_output()
        self._publish(stamp_ns)

    def _take_arrivals(self) -> None:
        """Process the arrivals of both sources since the last call."""
        if not self._connected:
            raise NotConnected(f"localizer {self._info.name!r}: is not connected", "call connect() before using it")
        odometry = self._odometry.arrivals(self._cursors[0])
        absolute = self._absolute.arrivals(self._cursors[1])
        self._cursors = (odometry.mark, absolute.mark)
        samples = odometry.estimates
        if odometry.restarted or absolute.restarted:
            samples = samples if odometry.restarted else self._odometry.arrivals().estimates
            self._reset()
        for sample in samples:
            if self._odometry_health.arrives(sample, None):
                self._filter.add_odometry(sample.stamp_ns, sample.pose)
        if self._expected is not None and samples:
            self._initialize(self._expected)
        for estimate in absolute.estimates:
            self._measure(estimate)
        self._report_events()
        for sample in samples:
            if self._published_ns is None or sample.stamp_ns > self._published_ns:
                self._publish(sample.stamp_ns)

    def _measure(self, estimate: PoseEstimate) -> None:
        if not self._health.arrives(estimate, self._filter.preintegration.newest_ns):
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
        self._filter.add_measurement(Measurement(estimate.stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad, weights, mark_m))

    def _admit(self, measured: Measurement, sample: OdometrySample) -> bool:
        yaw_rad = measured.yaw_rad if measured.dimensions == 3 else None
        point = MeasuredPoint(measured.stamp_ns, measured.x_m, measured.y_m, yaw_rad, measured.std_m, measured.lever_m)
        return self._health.admit(point, sample)

    def _report_events(self) -> None:
        """Report the events of new nodes and of the checks."""
        for event in self._odometry_health.events():
            self._history.report(event)
        for event in self._health.events():
            self._history.report(event)
            if event.kind == "frozen" and self._health.frozen_since_ns is not None:
                self._filter.retract(self._health.frozen_since_ns + 1, event.stamp_ns)
        for node in self._filter.new_nodes():
            if node.decision is Decision.RELOCALIZED and node.shift_m:
                detail = (
                    f"measurements agree with each other {node.shift_m:.2f} m from the pose by odometry: a beacon was "
                    "moved, or the robot was carried; from now on they are used"
                )
                self._event(node.stamp_ns, "anchor_moved", detail)
                self._health.relocalized()
                self._smoother.reset()
            elif (
                node.decision is Decision.REJECTED
                and node.run == 1
                and node.belief is not None
                and node.measurement is not None
            ):
                off_m = math.hypot(node.measurement.x_m - node.belief[0], node.measurement.y_m - node.belief[1])
                self._event(node.stamp_ns, "jump_rejected", f"a measurement lies {off_m:.2f} m off")

    def _event(self, stamp_ns: int, kind: str, detail: str) -> None:
        self._history.report(Event(stamp_ns, self._info.name, kind, detail))

    # --- output -----------------------------------------------------------------------------------------------------

    def _publish(self, stamp_ns: int) -> None:
        belief, sample = self._filter.estimate(stamp_ns), self._filter.preintegration.at(stamp_ns)
        if belief is None or sample is None:
            return
        reason = self._reason_lost(stamp_ns, belief)
        elapsed_s = 0.0 if self._published_ns is None else ns_to_seconds(stamp_ns - self._published_ns)
        pose, rest = self._smoother.step(belief, sample, elapsed_s)
        left = np.array((rest.x_m, rest.y_m, rest.yaw_rad))
        status = PoseStatus.LOST if reason else PoseStatus.OK
        covariance = covariance_of(belief) + np.outer(left, left)
        if reason and self._was_tracked and not self._lost_reason:
            self._event(stamp_ns, "lost", reason)
        elif self._lost_reason and self._was_tracked and not reason:
            self._event(stamp_ns, "regained", "measurements and odometry agree")
            self._smoother.reset()
        self._lost_reason, self._published_ns, self._was_tracked = reason, stamp_ns, self._was_tracked or not reason
        self._history.add(PoseEstimate(stamp_ns, pose, self._info.frame, covariance, status))

    def _reason_lost(self, stamp_ns: int, belief: Belief) -> str:
        """The reason why the robot is lost at an instant; empty if it is not."""
        options, source = self._options, self._absolute.info.name
        if self._health.broken:
            return f"{source}: {self._health.broken}"
        node = self._filter.node_at(stamp_ns)
        if node is None or node.agreed_ns is None or not node.measured:
            return f"{source} has not measured the robot's pose yet"
        contradicted_s = self._filter.contradicted_s(node)
        if contradicted_s > options.doubt_s:
            return f"{source} and odometry have contradicted each other for {contradicted_s:.1f} s"
        silent_s = ns_to_seconds(stamp_ns - node.agreed_ns)
        if silent_s > options.lost_after_s:
            return f"no measurement of {source} was accepted for {silent_s:.1f} s"
        std_m, std_deg = math.sqrt(max(belief[3], belief[6])), math.degrees(math.sqrt(belief[8]))
        if std_m > options.max_std_m or std_deg > options.max_std_deg:
            return f"the standard deviations have grown to {std_m:.2f} m and {std_deg:.0f} degrees"
        return ""

    def _with_reason(self, error: StaleData) -> StaleData:
        reason = self._health.broken or self._lost_reason
        if not reason and not self._filter.initialized:
            count = len(self._filter.nodes)
            problem = "the heading is not known yet" if count else "it has measured nothing yet"
            reason = f"{self._absolute.info.name}: {problem} ({count} measurements)"
        if not reason:
            return error
        return StaleData(
            f"{error.message}: {reason}", "move the robot into the range of its source and drive it half a meter"
        )
