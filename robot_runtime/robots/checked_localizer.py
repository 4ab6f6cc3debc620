"""A localizer or referee whose poses are checked against odometry and the map (``hal.pose_checks``).

``robot_runtime.robots.loader`` puts it around every source in ``map`` that is neither fused nor a simulator's truth.
"""

import threading
from dataclasses import replace

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import StaleData
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseHistory, Robot
from robot_runtime.hal.pose_checks import PoseChecks
from robot_runtime.hal.pose_health import Bounds
from robot_runtime.scenes.scene import Scene

SPAN_S = 60.0


def checked(robot: Robot, scene: Scene | None) -> Robot:
    """The robot with checks around its localizer and referee, unless fused, odometry or a simulator's truth."""
    made: dict[Localizer, Localizer] = {}
    for source in (robot.localizer, robot.referee):
        measures = source.info.frame == "map" and not source.info.is_truth and not source.sources
        made[source] = CheckedLocalizer(source, robot.odometry, map_bounds(scene)) if measures else source
    return replace(robot, localizer=made[robot.localizer], referee=made[robot.referee])


def map_bounds(scene: Scene | None) -> Bounds | None:
    """X and y of the lower left and upper right corner of a scene's map, meters; None if there is no scene."""
    if scene is None:
        return None
    area, (width_m, height_m) = scene.map, scene.map.size_m
    return area.origin_x_m, area.origin_y_m, area.origin_x_m + width_m, area.origin_y_m + height_m


class CheckedLocalizer(Localizer):
    """A source whose poses have the status ``lost`` where they fail a check.

    There is no thread: each call processes the arrivals since the last one.
    """

    def __init__(self, source: Localizer, odometry: Localizer | None, bounds: Bounds | None) -> None:
        self.source, self._odometry = source, odometry
        self._checks = PoseChecks(source.info, bounds)
        self._driven = PoseHistory("odometry", "odom", SPAN_S)
        self._history = PoseHistory(source.info.name, source.info.frame, max_gap_s=SPAN_S)
        self._lock = threading.RLock()
        self._marks = (0, 0)

    @property
    @override
    def info(self) -> LocalizerInfo:
        return self.source.info

    @override
    def connect(self) -> None:
        if self._odometry is not None:
            self._odometry.connect()
        self.source.connect()
        with self._lock:
            self._restart()

    @override
    def close(self) -> None:
        self.source.close()
        if self._odometry is not None:
            self._odometry.close()

    @override
    def latest(self, max_age_s: float) -> PoseEstimate:
        return self._judged(self.source.latest(max_age_s))

    @override
    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        return self._judged(self.source.at(stamp_ns, timeout_s))

    @override
    def arrivals(self, after: int = 0) -> Arrivals:
        with self._lock:
            self._take_arrivals()
            return self._history.arrivals(after)

    @override
    def expect(self, pose: SE2, std_m: float, std_rad: float) -> None:
        self.source.expect(pose, std_m, std_rad)
        with self._lock:
            self._take_arrivals()
            self._checks.reset()

    def _restart(self) -> None:
        self._checks.reset()
        self._history.clear()
        self._driven.clear()

    def _judged(self, estimate: PoseEstimate) -> PoseEstimate:
        """The estimate with the worst status of the poses that it was made of."""
        with self._lock:
            self._take_arrivals()
            try:
                checked = self._history.at(estimate.stamp_ns)
            except StaleData:
                checked = None  # older than everything that was checked
        return estimate if checked is None else replace(estimate, status=checked.status)

    def _take_arrivals(self) -> None:
        arrived = self.source.arrivals(self._marks[0])
        driven = Arrivals(0) if self._odometry is None else self._odometry.arrivals(self._marks[1])
        self._marks = (arrived.mark, driven.mark)
        if arrived.restarted or driven.restarted:
            self._restart()
        for sample in driven.estimates:
            self._driven.add(sample)
        for estimate in arrived.estimates:
            self._history.add(self._checks.check(estimate, self._odometry_by(estimate.stamp_ns)))
        for event in sorted((*arrived.events, *self._checks.events()), key=lambda event: event.stamp_ns):
            self._history.report(event)

    def _odometry_by(self, stamp_ns: int) -> PoseEstimate | None:
        """Odometry at an instant or, if that has not arrived yet, the newest; None if there is none."""
        newest = self._driven.newest()
        if newest is None or newest.stamp_ns < stamp_ns:
            return newest
        try:
            return self._driven.at(stamp_ns)
        except StaleData:
            return None
