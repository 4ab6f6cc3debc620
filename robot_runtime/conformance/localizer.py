"""Conformance tests of a localizer."""

from itertools import pairwise

import numpy as np

from robot_runtime.common.clock import NS_PER_S, ns_to_seconds
from robot_runtime.conformance.harness import Harness, check, refused
from robot_runtime.errors import StaleData
from robot_runtime.hal import Localizer, PoseStatus, Robot


class LocalizerConformance(Harness):
    """``hal.Localizer``, for the policy's, the referee and the base's odometry."""

    def _localizers(self, robot: Robot) -> tuple[Localizer, ...]:
        odometry = () if robot.odometry is None else (robot.odometry,)
        return tuple(dict.fromkeys((robot.localizer, robot.referee, *odometry)))

    def test_localizer_info_is_sane_while_disconnected(self) -> None:
        robot = self.make_robot()
        for localizer in self._localizers(robot):
            check(localizer.info.frame in ("map", "odom"), "a localizer reports in map or odom", localizer.info)
            check(localizer.info.rate_hz > 0, "the rate is positive", localizer.info)
        check(robot.referee.info.frame == "map", "scores are computed in map", robot.referee.info)

    def test_localizer_latest_is_fresh_ordered_and_complete(self) -> None:
        with self.connected() as robot:
            for localizer in self._localizers(robot):
                stamps = []
                for _ in range(30):
                    estimate = localizer.latest(max_age_s=0.5)
                    check(estimate.stamp_ns <= robot.clock.now_ns(), "a pose is not stamped in the future")
                    stamps.append(estimate.stamp_ns)
                    robot.clock.sleep(0.05)
                check(stamps == sorted(stamps), "stamps never decrease", stamps)
                check(len(set(stamps)) >= 3, "poses keep coming", stamps)
                check(estimate.frame == localizer.info.frame, "an estimate is in the frame that info states", estimate)
                check(estimate.status is PoseStatus.OK, "a robot at rest is not lost", estimate)
                cov = estimate.covariance
                check(cov.shape == (3, 3) and cov.dtype == np.float64, "covariance is float64 (3, 3)", cov)
                known = cov if np.isfinite(cov[2, 2]) else cov[:2, :2]  # some measure the position only
                check(
                    bool(np.allclose(known, known.T) and (np.linalg.eigvalsh(known) >= -1e-9).all()),
                    "it is a covariance",
                )
                with refused(StaleData, "a pose older than max_age_s raises StaleData"):
                    localizer.latest(max_age_s=-1.0)

    def test_localizer_at_answers_for_the_asked_instant(self) -> None:
        with self.connected() as robot:
            for localizer in self._localizers(robot):
                latest = localizer.latest(0.5)
                now_ns = robot.clock.now_ns()
                for asked_ns in (now_ns - NS_PER_S // 3, latest.stamp_ns, now_ns - 1, now_ns):
                    estimate = localizer.at(asked_ns, timeout_s=1.0)
                    check(estimate.stamp_ns == asked_ns, "at() answers for the very instant", estimate.stamp_ns)
                    check(estimate.frame == localizer.info.frame, "at() answers in the localizer's frame", estimate)
                    check(
                        estimate.pose.distance_to(latest.pose) <= 2 * self.pose_tolerance_m,
                        "a robot at rest has one position",
                        (estimate.pose, latest.pose),
                    )

    def test_localizer_at_interpolates_while_moving(self) -> None:
        with self.connected() as robot:
            requested = self.at_speed(robot)
            self.drive(robot, requested, 0.3)
            end_ns = robot.clock.now_ns() - NS_PER_S // 20
            for localizer in self._localizers(robot):
                poses = [localizer.at(end_ns - i * NS_PER_S // 50, timeout_s=1.0).pose for i in range(10)]
                travelled_m = poses[0].distance_to(poses[-1])
                expected_m = requested.linear_m_s * 9 / 50
                allowed_m = 0.3 * expected_m + 2 * self.pose_tolerance_m
                check(abs(travelled_m - expected_m) <= allowed_m, "poses follow the motion", (travelled_m, expected_m))
                check(
                    all(a.distance_to(b) > 0 for a, b in pairwise(poses)),
                    "poses between measurements are interpolated, not held",
                    poses,
                )

    def test_localizer_hands_out_every_arrival_once(self) -> None:
        with self.connected() as robot:
            for localizer in self._localizers(robot):
                mark = localizer.arrivals().mark
                robot.clock.sleep(1.0)
                first, again = localizer.arrivals(mark), localizer.arrivals(mark)
                check(len(first.estimates) >= 2, "what arrived in a second is handed out", len(first.estimates))
                check(not first.restarted, "a source at work has not forgotten anything", localizer.info)
                check(
                    first.estimates == again.estimates[: len(first.estimates)],
                    "reading takes nothing away",
                    localizer.info,
                )
                after = localizer.arrivals(again.mark)
                both = [estimate.stamp_ns for estimate in (*again.estimates, *after.estimates)]
                check(len(set(both)) == len(both), "nothing is handed out twice", both)
                check(
                    all(estimate.frame == localizer.info.frame for estimate in first.estimates),
                    "arrivals are in the localizer's frame",
                    localizer.info,
                )
                check(localizer.arrivals(0).mark >= after.mark, "marks never decrease", localizer.info)

    def test_localizer_at_refuses_far_past_and_far_future_in_time(self) -> None:
        with self.connected() as robot:
            for localizer in self._localizers(robot):
                for offset_ns in (-3600 * NS_PER_S, 3600 * NS_PER_S):
                    before_ns = robot.clock.now_ns()
                    with refused(StaleData, "at() refuses an instant that it has no measurements for"):
                        localizer.at(before_ns + offset_ns, timeout_s=0.3)
                    waited_s = ns_to_seconds(robot.clock.now_ns() - before_ns)
                    check(waited_s <= 0.3 + 0.2, "at() respects its timeout", f"{waited_s:.3f} s")
