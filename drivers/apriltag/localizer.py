"""Localizer by tags: from images to poses, and to events that explain missing poses."""

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from drivers.apriltag.consistency import TagConsistencyMonitor, common_size
from drivers.apriltag.image_sources import Image, ImageSource
from drivers.apriltag.pose import FloorPrior, Geometry, Sighting, Solution, solve
from robot_runtime.common.clock import Clock
from robot_runtime.common.config import Positive, Strict
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import Latency, Spread
from robot_runtime.errors import NotConnected, StaleData
from robot_runtime.hal import STREAMS, Event, Lens, LocalizerInfo, PoseEstimate, Velocity
from robot_runtime.hal.pose_history import BufferedLocalizer, PoseHistory
from robot_runtime.hal.simulation import Simulation, Subscription
from robot_runtime.imaging.tag_detector import Detection, TagDetector
from robot_runtime.scenes.tag_map import Tag

NEAR_PREDICTION_M = 0.15
"""Bound between the error of odometry between two images (less) and that of a tag's mirror solution (more)."""

CAPTURE_S = 0.3
"""Time limit of the image that ``latest`` requests where the newest pose is too old."""


@dataclass(frozen=True)
class Accuracy(Strict):
    """Standard deviations of the inputs of a pose.

    Attributes:
        corner_sd_px: standard deviation of a corner's position in the image.
        map_sd_m: standard deviation of a corner's position in the room, or on the robot.
        stamp_sd_s: standard deviation of an exposure's instant; it matters while the robot moves.
        stance: standard deviations of the robot's tilt and height on the floor.
    """

    corner_sd_px: Positive = 0.12
    map_sd_m: Spread = 0.002
    stamp_sd_s: Latency = 0.005
    stance: FloorPrior = field(default_factory=FloorPrior)


@dataclass(frozen=True, slots=True)
class RobotState:
    """State of the robot at an exposure.

    Attributes:
        geometry: projection of tags given the robot's pose; None if it is unknown.
        trouble: why the geometry is unknown; empty otherwise.
        odom: pose by odometry that distinguishes a tag's two solutions; None if unknown.
    """

    geometry: Geometry | None
    trouble: str = ""
    odom: SE2 | None = None
    velocity: Velocity = field(default_factory=Velocity)


class TagLocalizer(BufferedLocalizer):
    """Poses in ``map`` from images of known tags.

    Images come periodically, and on request for a pose newer than the last image. Missing poses are reported by the
    events ``no_fix`` (when they begin) and ``fix`` (when they end). Tags that contradict the others are reported by
    ``anchor_moved`` or ``scale``, and ignored until they agree.
    """

    def __init__(
        self,
        info: LocalizerInfo,
        clock: Clock,
        source: ImageSource,
        detector: TagDetector,
        tags: Mapping[int, Tag],
        robot_state: Callable[[], RobotState],
        accuracy: Accuracy,
        remedy: str,
        simulation: Simulation | None = None,
    ) -> None:
        # Linear between two images: a robot that brakes in between is millimeters off the line.
        max_gap_s = max(STREAMS["pose"].max_age_s, 1.5 / info.rate_hz)
        super().__init__(info, clock, PoseHistory(info.name, info.frame, max_gap_s=max_gap_s), 1 / info.rate_hz)
        self._source, self._detector = source, detector
        self._tags, self._robot_state, self._accuracy, self._simulation = dict(tags), robot_state, accuracy, simulation
        self._remedy = remedy
        self._lock = threading.Lock()
        self._placed: Subscription | None = None
        self._connected = False
        self._reset()

    def _reset(self) -> None:
        self._monitor = TagConsistencyMonitor()
        self._scale_reported = False
        self._last: tuple[SE2, SE2] | None = None
        """The last pose, and odometry's at that instant."""
        self._captured_ns = -1
        self._has_fix: bool | None = None
        self._trouble = "no image has come"

    def connect(self) -> None:
        if self._connected:
            return
        self._reset()
        self._history.clear()
        self._source.open(self._receive)
        if self._simulation is not None:
            self._placed = self._simulation.on_placed(self._clear)
        self._connected = True

    def close(self) -> None:
        self._connected = False
        self._source.close()
        if self._placed is not None:
            self._placed.close()
            self._placed = None

    def latest(self, max_age_s: float) -> PoseEstimate:
        self._require_connected()
        now_ns = self._clock.now_ns()
        newest = self._history.newest()
        if max_age_s >= 0 and (newest is None or now_ns - newest.stamp_ns > max_age_s * 1e9):
            self._capture(now_ns, CAPTURE_S)
        try:
            return super().latest(max_age_s)
        except StaleData as error:
            raise self._with_reason(error) from error

    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        self._require_connected()
        estimate = self._history.at(stamp_ns)
        if estimate is None:
            self._capture(stamp_ns, timeout_s)
            estimate = self._history.at(stamp_ns)
        if estimate is None:
            raise self._with_reason(StaleData(f"{self._info.name}: no pose of the instant asked for", ""))
        return estimate

    def expect(self, pose: SE2, std_m: float, std_rad: float) -> None:
        """Set the pose that distinguishes a tag's two solutions from the start, if it is accurate enough."""
        self._require_connected()
        odom = self._robot_state().odom
        if odom is not None and std_m <= NEAR_PREDICTION_M / 2:
            with self._lock:
                self._last = pose, odom

    def _require_connected(self) -> None:
        if not self._connected:
            raise NotConnected(f"{self._info.name}: is not connected", "call connect() before using it")

    def _capture(self, after_ns: int, timeout_s: float) -> None:
        if self._captured_ns < after_ns:
            self._source.capture(after_ns, timeout_s)

    def _with_reason(self, error: StaleData) -> StaleData:
        reason = f": {self._trouble}" if self._trouble else ""
        return StaleData(f"{error.message}{reason}", self._remedy)

    def _clear(self) -> None:
        with self._lock:
            self._history.clear()
            self._last = None
            self._captured_ns = -1

    def _receive(self, stamp_ns: int, image: Image) -> None:
        robot_state = self._robot_state()
        with self._lock:
            self._captured_ns = max(self._captured_ns, stamp_ns)
            if robot_state.geometry is None:
                self._report_no_fix(stamp_ns, robot_state.trouble)
                return
            found = self._detector.detect(image)
            lens, accuracy = self._source.lens, self._accuracy
            known = [sighting(item, self._tags[item.id], lens, accuracy) for item in found if item.id in self._tags]
            if not known:
                ids = ", ".join(str(item.id) for item in found)
                self._report_no_fix(
                    stamp_ns, f"the only tags in view, {ids}, are not in the map" if ids else "no tag in view"
                )
                return
            self._take(stamp_ns, known, robot_state.geometry, robot_state)

    def _take(self, stamp_ns: int, known: list[Sighting], geometry: Geometry, robot_state: RobotState) -> None:
        stance = self._accuracy.stance
        trusted = [item for item in known if item.tag.id not in self._monitor.rejected]
        if not trusted:
            self._report_no_fix(stamp_ns, f"the only tags in view, {_ids(known)}, are not where the map has them")
            return
        solutions = solve(trusted, geometry, stance)
        chosen, confirmed = self._choose(solutions, robot_state.odom)
        if chosen is None:
            self._report_no_fix(stamp_ns, _no_pose_reason(trusted, solutions))
            if len(trusted) > 1 and not self._scale_reported:
                size = common_size(trusted, geometry, stance)
                if size is not None:
                    self._scale_reported = True
                    self._report(stamp_ns, size.kind, size.detail)
            return
        # Rejected tags are compared as well, because they may agree again.
        every = trusted + [item for item in known if item.tag.id in self._monitor.rejected]
        for change in self._monitor.update(every, chosen.over(every, geometry), geometry, confirmed):
            self._report(stamp_ns, change.kind, change.detail)
        if self._has_fix is False:
            self._report(stamp_ns, "fix", f"by the tags {_ids([trusted[number] for number in chosen.used])}")
        self._has_fix, self._trouble = True, ""
        if robot_state.odom is not None:
            self._last = chosen.pose, robot_state.odom
        covariance = self._covariance(chosen, robot_state.velocity)
        self._history.add(PoseEstimate(stamp_ns, chosen.pose, self._info.frame, covariance))

    def _choose(self, solutions: list[Solution], odom: SE2 | None) -> tuple[Solution | None, bool]:
        """Return the one solution that is not ambiguous, and whether odometry selected it."""
        if len(solutions) <= 1:
            return (solutions[0] if solutions else None), False
        if self._last is None or odom is None:
            return None, False
        pose_then, odom_then = self._last
        predicted = pose_then @ odom.relative_to(odom_then)
        near = [s for s in solutions if s.pose.distance_to(predicted) <= NEAR_PREDICTION_M]
        return (near[0], True) if len(near) == 1 else (None, False)

    def _covariance(self, solution: Solution, velocity: Velocity) -> np.ndarray:
        yaw_rad, sd_s = solution.pose.yaw_rad, self._accuracy.stamp_sd_s
        moved = np.array([math.cos(yaw_rad), math.sin(yaw_rad), 0.0]) * velocity.linear_m_s
        moved[2] = velocity.angular_rad_s
        return np.asarray(solution.covariance + sd_s**2 * np.outer(moved, moved))

    def _report_no_fix(self, stamp_ns: int, trouble: str) -> None:
        """Record why there is no pose; an event when that begins."""
        if self._has_fix is not False:
            self._report(stamp_ns, "no_fix", trouble)
        self._has_fix, self._trouble = False, trouble

    def _report(self, stamp_ns: int, kind: str, detail: str) -> None:
        self._history.report(Event(stamp_ns, self._info.name, kind, detail))


def sighting(seen: Detection, tag: Tag, lens: Lens, accuracy: Accuracy) -> Sighting:
    """Return the rays to a detected tag's corners, with their standard deviation by image and map together."""
    focal_px = math.sqrt(lens.fx * lens.fy)
    distance_m = tag.size_m * focal_px / seen.edge_px
    sd = math.hypot(accuracy.corner_sd_px / focal_px, accuracy.map_sd_m / distance_m)
    return Sighting(tag, lens.rays(seen.corners_px)[:, :2], sd)


def _no_pose_reason(sightings: list[Sighting], solutions: list[Solution]) -> str:
    if not solutions:
        return f"by the tags {_ids(sightings)} the robot would not stand on the floor"
    if len({solution.used for solution in solutions}) > 1:
        return f"the tags {_ids(sightings)} contradict each other, and no majority decides"
    return f"the tags {_ids(sightings)} look the same from two places"


def _ids(sightings: list[Sighting]) -> str:
    return ", ".join(str(item.tag.id) for item in sightings)
