"""Where the robot is, from odometry and from measurements that come late: an extended Kalman filter over SE(2).

The filter is a fold over the measurements of the last seconds *in the order of their stamps*. Each has a node: the
belief after it, and what was decided about it. One that arrives late is put where it belongs, and everything after it
is folded in again, so that the order of arrival makes no difference (Bar-Shalom, Li, Kirubarajan 2001, "Estimation with
Applications to Tracking and Navigation", 2001, on out-of-sequence measurements by reprocessing). Between two nodes the
belief is carried by odometry in one step, whatever the number of samples (``localization.track``): replaying two
seconds of 8 Hz beacons costs 16 steps, not 100.

A measurement whose innovation is too improbable is rejected (chi-squared gate on the Mahalanobis distance). If all
are rejected for a while and agree with each other, the filter is reinitialized where they place the robot
(``localization.relocalization``), as it is at the start without prior knowledge.

Beliefs are tuples of Python floats: for 3 x 3 matrices numpy's calls cost ten times the arithmetic.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.localization.gaussian_pose import Belief, Measurement, predict, update
from robot_runtime.localization.odometry_preintegration import OdometryNoise, OdometrySample, PreintegratedOdometry
from robot_runtime.localization.relocalization import RelocalizationLimits, relocalize

GATES = {2: 13.82, 3: 16.27}
"""Chi-squared quantiles at 0.999, by the measurement's dimensions: of good ones, one in a thousand is rejected."""

KEPT_NODES = 40
"""At least so many measurements are kept, however slow the source is: what an anchor is found from."""


class Verdict(str, Enum):
    """What became of a measurement when it was folded in."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELOCALIZED = "relocalized"
    WAITING = "waiting"
    TOO_OLD = "too_old"
    REFUSED = "refused"


@dataclass(slots=True)
class Node:
    """One measurement's place in the fold.

    Attributes:
        belief: after it; None while nothing is known.
        run: how many measurements in a row, this one included, were rejected.
        agreed_ns: stamp of the last one that was not, or of what :meth:`PoseFilter.begin` was told.
        measured: whether any was not: what somebody said of the start is no measurement.
        shift_m: how far the belief was moved here, where the verdict is ``RELOCALIZED``.
    """

    stamp_ns: int
    fix: Measurement | None
    waypoint: OdometrySample
    belief: Belief | None = None
    verdict: Verdict = Verdict.REJECTED
    run: int = 0
    agreed_ns: int | None = None
    measured: bool = False
    shift_m: float = 0.0


class PoseFilter:
    """Pure: no clock, no thread, no device.

    Args:
        history_s: how late a measurement may come, at least 2 s.
        limits: when measurements that contradict the belief replace it.
        admit: whether a measurement, seen beside odometry at its instant, is to be folded in at all; asked in the order
            of arrival.

    Raises:
        ValueError: for a history that is too short.
    """

    def __init__(
        self,
        noise: OdometryNoise | None = None,
        limits: RelocalizationLimits | None = None,
        history_s: float = 5.0,
        admit: Callable[[Measurement, OdometrySample], bool] | None = None,
    ) -> None:
        if history_s < 2:
            raise ValueError(f"history_s must be at least 2, got {history_s}")
        self._limits = limits or RelocalizationLimits()
        self._admit = admit
        self._history_ns = seconds_to_ns(history_s)
        self.track = PreintegratedOdometry(noise or OdometryNoise(), 2 * history_s + 10)
        self._stamps_ns: list[int] = []
        self._nodes: list[Node] = []
        self._waiting: list[tuple[int, int, Measurement]] = []
        self._arrived = 0
        self._floor_ns: int | None = None
        """Nothing is folded in up to here: what came before is no longer kept."""
        self._news: list[Node] = []

    def clear(self) -> None:
        """Forget everything: the robot was put somewhere else, and odometry may have begun anew."""
        self.track.clear()
        self.forget()

    def forget(self) -> None:
        """Forget all measurements, and with them where the robot is; odometry goes on."""
        self._stamps_ns.clear()
        self._nodes.clear()
        self._waiting.clear()
        self._news.clear()
        self._floor_ns = None

    @property
    def nodes(self) -> list[Node]:
        """The measurements that are kept, in the order of their stamps."""
        return self._nodes

    @property
    def initialized(self) -> bool:
        """Whether it knows where the robot is, well or badly."""
        return bool(self._nodes) and self._nodes[-1].belief is not None

    def begin(self, stamp_ns: int, pose: SE2, std_m: float, std_rad: float) -> bool:
        """Forget all measurements: the robot stands at ``pose`` (map), give or take.

        Returns:
            False, and nothing happens, if odometry does not reach ``stamp_ns``.
        """
        waypoint = self.track.at(stamp_ns)
        if waypoint is None:
            return False
        self._waiting.clear()
        variance = std_m**2
        belief = (pose.x_m, pose.y_m, pose.yaw_rad, variance, 0.0, 0.0, variance, 0.0, std_rad**2)
        self._stamps_ns[:] = [stamp_ns]
        self._nodes[:] = [Node(stamp_ns, None, waypoint, belief, Verdict.RELOCALIZED, 0, stamp_ns)]
        self._floor_ns = stamp_ns
        return True

    def odometry(self, stamp_ns: int, pose: SE2) -> bool:
        """Take in odometry; False if it is not newer than what is there, and then it is ignored.

        Measurements that were waiting for it are folded in.
        """
        if not self.track.add(stamp_ns, pose):
            return False
        while self._waiting and self._waiting[0][0] <= stamp_ns:
            self._insert(self._waiting.pop(0)[2])
        return True

    def measure(self, fix: Measurement) -> Verdict:
        """Take in a measurement, in any order. One of a stamp that is there already replaces it."""
        newest_ns = self.track.newest_ns
        if newest_ns is None or fix.stamp_ns > newest_ns:
            self._arrived += 1
            insort(self._waiting, (fix.stamp_ns, self._arrived, fix))
            return Verdict.WAITING
        return self._insert(fix)

    def retract(self, since_ns: int, until_ns: int) -> None:
        """Take measurements of a stretch of time out again: it has turned out that they were none."""
        first, last = bisect_left(self._stamps_ns, since_ns), bisect_right(self._stamps_ns, until_ns)
        while first < last and (first == 0 or self._nodes[first].fix is None):
            first += 1  # what everything after it rests on
        del self._stamps_ns[first:last], self._nodes[first:last]
        for i in range(first, len(self._nodes)):
            self._fold(i)

    def news(self) -> list[Node]:
        """The nodes folded in for the first time since the last call, newest stamp last; a late one is told of too."""
        news, self._news = self._news, []
        return news

    def estimate(self, stamp_ns: int) -> Belief | None:
        """The belief at an instant between the oldest measurement kept and the newest odometry; None outside."""
        index = bisect_right(self._stamps_ns, stamp_ns) - 1
        if index < 0:
            return None
        node, waypoint = self._nodes[index], self.track.at(stamp_ns)
        if node.belief is None or waypoint is None:
            return None
        return predict(node.belief, node.waypoint, waypoint)

    def node_at(self, stamp_ns: int) -> Node | None:
        """The last measurement up to an instant; None if there is none."""
        index = bisect_right(self._stamps_ns, stamp_ns) - 1
        return self._nodes[index] if index >= 0 else None

    def contradicted_s(self, node: Node) -> float:
        """For how long, up to a node, every measurement was rejected; 0 while too few of them were."""
        if node.run < self._limits.min_run or node.agreed_ns is None:
            return 0.0
        return ns_to_seconds(node.stamp_ns - node.agreed_ns)

    def _insert(self, fix: Measurement) -> Verdict:
        waypoint = self.track.at(fix.stamp_ns)
        if waypoint is None or (self._floor_ns is not None and fix.stamp_ns <= self._floor_ns):
            return Verdict.TOO_OLD
        if self._admit is not None and not self._admit(fix, waypoint):
            return Verdict.REFUSED
        stamps_ns, nodes = self._stamps_ns, self._nodes
        index = bisect_left(stamps_ns, fix.stamp_ns)
        node = Node(fix.stamp_ns, fix, waypoint)
        if index < len(nodes) and stamps_ns[index] == fix.stamp_ns:
            nodes[index] = node
        else:
            stamps_ns.insert(index, fix.stamp_ns)
            nodes.insert(index, node)
        for i in range(index, len(nodes)):
            self._fold(i)
        self._news.append(node)
        self._prune()
        return node.verdict

    def _fold(self, index: int) -> None:
        """The belief at a node, from the one before."""
        node = self._nodes[index]
        fix = node.fix
        if fix is None:
            return
        before = self._nodes[index - 1] if index else None
        predicted = None
        if before is not None and before.belief is not None:
            predicted = predict(before.belief, before.waypoint, node.waypoint)
            distance, updated = update(predicted, fix)
            if distance <= GATES[fix.dimensions]:
                node.belief, node.verdict = updated, Verdict.ACCEPTED
                node.run, node.agreed_ns, node.measured, node.shift_m = 0, node.stamp_ns, True, 0.0
                return
        node.belief, node.verdict, node.shift_m = predicted, Verdict.REJECTED, 0.0
        node.run = 1 if before is None else before.run + 1
        node.agreed_ns = None if before is None else before.agreed_ns
        node.measured = before is not None and before.measured
        found = self._relocalized(index, predicted)
        if found is not None:
            shift_m = 0.0 if predicted is None else math.hypot(found[0] - predicted[0], found[1] - predicted[1])
            node.belief, node.verdict, node.shift_m = found, Verdict.RELOCALIZED, shift_m
            node.run, node.agreed_ns, node.measured = 0, node.stamp_ns, True

    def _relocalized(self, index: int, predicted: Belief | None) -> Belief | None:
        node, limits = self._nodes[index], self._limits
        if predicted is None:
            if node.run < limits.min_first:
                return None
        elif self.contradicted_s(node) < limits.reanchor_s:
            return None
        first = max(0, index + 1 - min(node.run, limits.max_run))
        run = [(n.fix, n.waypoint) for n in self._nodes[first : index + 1] if n.fix is not None]
        return relocalize(run, predicted, limits)

    def _prune(self) -> None:
        """Nodes too old for anything to be put among them go, half of them at once."""
        half = len(self._nodes) // 2
        if half > KEPT_NODES and self._stamps_ns[half] < self._stamps_ns[-1] - self._history_ns:
            del self._nodes[:half], self._stamps_ns[:half]
            self._floor_ns = self._stamps_ns[0]


def pose_of(belief: Belief) -> SE2:
    """The pose that a belief holds, its yaw wrapped."""
    return SE2(belief[0], belief[1], wrap_angle(belief[2]))
