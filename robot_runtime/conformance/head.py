"""Conformance tests of a head."""

import math

import numpy as np

from robot_runtime.common.clock import seconds_to_ns, wait_for
from robot_runtime.conformance.harness import NOT_FINITE, Harness, check, refused
from robot_runtime.errors import InvalidCommand, StaleData
from robot_runtime.hal import HeadLimits, Robot


class HeadConformance(Harness):
    """``hal.Head``."""

    def test_head_limits_are_sane_while_disconnected(self) -> None:
        limits = self.make_robot().head.limits
        check(limits.min_pan_rad <= limits.max_pan_rad, "pan limits are ordered", limits)
        check(limits.min_tilt_rad <= limits.max_tilt_rad, "tilt limits are ordered", limits)
        if _moves(limits):
            check(limits.min_pan_rad <= 0 <= limits.max_pan_rad, "a head that moves can look straight", limits)
            check(limits.min_tilt_rad <= 0 <= limits.max_tilt_rad, "a head that moves can look level", limits)
        check(max(limits.max_pan_rad, limits.max_tilt_rad) <= math.pi, "limits are in radians", limits)
        check(limits.max_speed_rad_s > 0 and limits.settle_s >= 0, "speed and settling time are sane", limits)

    def test_head_state_raises_rather_than_return_an_old_value(self) -> None:
        with self.connected() as robot:
            state = robot.head.state(max_age_s=0.2)
            check(0 <= robot.clock.now_ns() - state.stamp_ns <= seconds_to_ns(0.2), "a state is fresh")
            with refused(StaleData, "a state older than max_age_s raises StaleData"):
                robot.head.state(max_age_s=-1.0)

    def test_head_clips_moves_and_settles(self) -> None:
        with self.connected() as robot:
            limits = robot.head.limits
            for pan, tilt in ((0.0, limits.min_tilt_rad / 2), (100.0, -100.0), (-100.0, 100.0), (0.0, 0.0)):
                goal = (
                    min(max(pan, limits.min_pan_rad), limits.max_pan_rad),
                    min(max(tilt, limits.min_tilt_rad), limits.max_tilt_rad),
                )
                before_ns = robot.clock.now_ns()
                commanded = robot.head.command(pan, tilt)
                check(robot.clock.now_ns() - before_ns <= seconds_to_ns(0.1), "command() does not wait")
                check(np.allclose(commanded, goal), "command() returns the angles clipped to the limits", commanded)
                if _moves(limits):
                    check(robot.head.state(0.2).moving, "the head reports motion from its command on")
                self._settles(robot, goal)

    def _settles(self, robot: Robot, goal: tuple[float, float]) -> None:
        limits = robot.head.limits
        reach_rad = max(limits.max_pan_rad - limits.min_pan_rad, limits.max_tilt_rad - limits.min_tilt_rad)
        allowed_s = 2 * reach_rad / limits.max_speed_rad_s + limits.settle_s + 1.0
        still = wait_for(robot.clock, lambda: None if robot.head.state(0.2).moving else True, allowed_s, poll_s=0.02)
        state = robot.head.state(0.2)
        check(still is not None, f"the head reaches its goal within {allowed_s:.1f} s", state)
        error_rad = max(abs(state.pan_rad - goal[0]), abs(state.tilt_rad - goal[1]))
        check(error_rad <= math.radians(1), "the head comes to rest within 1 degree of its goal", (state, goal))

    def test_head_refuses_what_is_not_finite_and_stays(self) -> None:
        with self.connected() as robot:
            before = robot.head.state(0.2)
            for value in NOT_FINITE:
                for pan, tilt in ((value, 0.0), (0.0, value)):
                    with refused(InvalidCommand, "an angle that is not finite is refused"):
                        robot.head.command(pan, tilt)
            robot.clock.sleep(0.3)
            after = robot.head.state(0.2)
            moved_rad = max(abs(after.pan_rad - before.pan_rad), abs(after.tilt_rad - before.tilt_rad))
            check(moved_rad < math.radians(1), "a refused angle leaves the head where it is", (before, after))


def _moves(limits: HeadLimits) -> bool:
    """False for a mount that does not move, whatever it is commanded."""
    return limits.min_pan_rad < limits.max_pan_rad or limits.min_tilt_rad < limits.max_tilt_rad
