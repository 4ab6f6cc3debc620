"""The contract of ``robot_runtime.hal`` as a test suite that every robot must pass; shipped, so that anyone can run it.

::

    # test_my_robot.py, run with pytest
    from robot_runtime.conformance import RobotConformance

    class TestMyRobot(RobotConformance):
        def make_robot(self) -> Robot:
            return load_robot("my_robot.yaml", RobotContext(scene=None, camera=None, seed=0))

A test site with a wall adds :class:`ContactConformance`; one with an object to take, a robot with a hand,
:class:`robot_runtime.conformance_objects.ObjectConformance`.

**It drives the robot**: give it 0.6 m of free floor ahead and room to turn. It waits on the robot's own clock only,
so a simulated robot needs no real time. A check that fails names the rule that was broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, cast

import numpy as np

from robot_runtime.clock import NS_PER_S, ns_to_seconds, seconds_to_ns, wait_for
from robot_runtime.errors import DeviceFault, InvalidCommand, NotConnected, RuntimeFault, StaleData
from robot_runtime.geometry import wrap_angle
from robot_runtime.hal import BaseState, Device, Halt, Localizer, PoseStatus, Robot, Velocity, Zone

NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
EXPIRY_S = 0.2


def check(holds: bool, rule: str, found: object = None) -> None:
    """Fail, naming the rule, unless it holds."""
    if not holds:
        raise AssertionError(f"rule broken: {rule}" + ("" if found is None else f"; found {found}"))


@contextmanager
def refused(error_type: type[RuntimeFault], rule: str) -> Iterator[None]:
    """Fail, naming the rule, unless the body raises ``error_type`` with a message and a remedy."""
    try:
        yield
    except error_type as error:
        check(bool(error.message and error.remedy), f"{rule}; the error says what is wrong and the remedy", repr(error))
    else:
        raise AssertionError(f"rule broken: {rule}; found no {error_type.__name__}")


class Harness:
    """What a subclass provides, and how the checks use it.

    Attributes:
        start_s: within this time after ``connect()`` every stream must have delivered.
        drive_m_s, turn_rad_s: speeds of the checks that move.
        pose_tolerance_m, pose_tolerance_rad: how well localizer and referee know a robot that stands still.
        can_place: whether the placer works without a person.
    """

    start_s: ClassVar[float] = 1.0
    drive_m_s: ClassVar[float] = 0.3
    turn_rad_s: ClassVar[float] = 0.5
    pose_tolerance_m: ClassVar[float] = 0.03
    pose_tolerance_rad: ClassVar[float] = math.radians(3)
    can_place: ClassVar[bool] = True

    def make_robot(self) -> Robot:
        """A new, disconnected robot that stands still, with free floor ahead."""
        raise TypeError(f"{type(self).__name__} must override make_robot()")

    @contextmanager
    def connected(self) -> Iterator[Robot]:
        """A connected robot whose streams have had time to begin."""
        robot = self.make_robot()
        with robot:
            robot.clock.sleep(self.start_s)
            yield robot

    def drive(self, robot: Robot, wish: Velocity, seconds: float) -> list[Velocity]:
        """Repeat a command at half the base's rate, at least every 50 ms; return what was let through each time."""
        period_s = min(0.05, 2 / robot.base.info.rate_hz)
        let_through = []
        for _ in range(math.ceil(seconds / period_s)):
            let_through.append(robot.base.command(wish))
            robot.clock.sleep(period_s)
        return let_through

    def forward(self, robot: Robot) -> Velocity:
        """The speed at which the checks drive."""
        return Velocity(min(self.drive_m_s, robot.base.info.max_linear_m_s), 0.0)

    def at_speed(self, robot: Robot) -> Velocity:
        """Drive forward until the ramp is over."""
        wish = self.forward(robot)
        ramp_s = wish.linear_m_s / robot.base.info.max_linear_accel_m_s2
        let_through = self.drive(robot, wish, ramp_s + 0.2)
        check(
            math.isclose(let_through[-1].linear_m_s, wish.linear_m_s, rel_tol=0.01),
            "a repeated command that nothing forbids is let through after its ramp",
            let_through[-1],
        )
        return wish

    def state(self, robot: Robot) -> BaseState:
        """The base's state, as the motion loop reads it."""
        return robot.base.state(max_age_s=0.1)

    def stays(self, robot: Robot, seconds: float, rule: str, wish: Velocity | None = None) -> None:
        """Fail unless the robot, having come to rest within 0.2 s, does not move for a while, whatever is wished."""
        if wish is None:
            robot.clock.sleep(EXPIRY_S)
        else:
            self.drive(robot, wish, EXPIRY_S)
        before = self.state(robot)
        if wish is None:
            robot.clock.sleep(seconds)
        else:
            self.drive(robot, wish, seconds)
        after = self.state(robot)
        check(after.odom.distance_to(before.odom) < 0.002, rule, f"{before.odom} then {after.odom}")
        check(abs(wrap_angle(after.odom.yaw_rad - before.odom.yaw_rad)) < 0.01, rule, f"{before.odom}, {after.odom}")


class BaseConformance(Harness):
    """``hal.Base``."""

    def test_base_info_is_sane_while_disconnected(self) -> None:
        info = self.make_robot().base.info
        for name in ("radius_m", "max_linear_m_s", "max_angular_rad_s", "max_linear_accel_m_s2"):
            value = getattr(info, name)
            check(math.isfinite(value) and value > 0, f"BaseInfo.{name} is positive", value)
        check(info.max_angular_accel_rad_s2 > 0, "BaseInfo.max_angular_accel_rad_s2 is positive")
        check(info.rate_hz * EXPIRY_S >= 2, "the base reports at least twice within a command's life", info.rate_hz)
        check(0.05 <= info.radius_m <= 1, "BaseInfo.radius_m is in metres", info.radius_m)

    def test_base_state_is_fresh_ordered_and_complete(self) -> None:
        with self.connected() as robot:
            stamps = []
            for _ in range(50):
                state = self.state(robot)
                now_ns = robot.clock.now_ns()
                check(state.stamp_ns <= now_ns, "a state is not stamped in the future")
                check(now_ns - state.stamp_ns <= seconds_to_ns(0.1), "a state is no older than the reader allows")
                stamps.append(state.stamp_ns)
                robot.clock.sleep(0.02)
            check(stamps == sorted(stamps), "stamps never decrease", stamps)
            seen_hz = (len(set(stamps)) - 1) / max(1e-9, ns_to_seconds(stamps[-1] - stamps[0]))
            check(seen_hz >= min(25, robot.base.info.rate_hz / 2), "states come at the rate that info states", seen_hz)
            check(all(map(math.isfinite, (state.odom.x_m, state.odom.y_m, state.odom.yaw_rad))), "odometry is finite")
            check(all(isinstance(z, Zone) for z in (state.bumper, state.cliff, state.wheel_drop)), "zones are Zones")
            check(state.battery_v > 0, "BaseState.battery_v is in volts", state.battery_v)
            check(0 <= state.battery_fraction <= 1, "BaseState.battery_fraction is 0..1", state.battery_fraction)

    def test_base_state_raises_rather_than_return_an_old_value(self) -> None:
        with self.connected() as robot, refused(StaleData, "a state older than max_age_s raises StaleData"):
            robot.base.state(max_age_s=-1.0)

    def test_base_command_returns_at_once_what_the_guard_let_through(self) -> None:
        with self.connected() as robot:
            info = robot.base.info
            before_ns = robot.clock.now_ns()
            first = robot.base.command(self.forward(robot))
            check(robot.clock.now_ns() - before_ns <= seconds_to_ns(0.05), "command() does not wait")
            slack_m_s = info.max_linear_accel_m_s2 * 0.1
            check(0 <= first.linear_m_s <= slack_m_s, "speed from rest is limited by acceleration", first)
            robot.base.stop()
            for sign in (1, -1):
                let_through = self.drive(robot, Velocity(0.0, sign * 1e6), 0.5)
                peak = max(abs(v.angular_rad_s) for v in let_through)
                check(peak <= info.max_angular_rad_s * 1.0001, "no command gets past the speed limit", peak)
                check(all(v.angular_rad_s * sign >= 0 for v in let_through), "the sign of a command is kept")
                robot.base.stop()

    def test_base_forward_is_positive_and_in_metres(self) -> None:
        with self.connected() as robot:
            before = self.state(robot).odom
            truth_before = robot.referee.latest(0.5).pose
            self.at_speed(robot)
            started = self.state(robot).odom
            self.drive(robot, self.forward(robot), 0.4)
            local = self.state(robot).odom.relative_to(started)
            expected_m = 0.4 * self.forward(robot).linear_m_s
            check(abs(local.x_m - expected_m) <= 0.2 * expected_m, "odometry is in metres, forward positive", local)
            check(abs(local.y_m) <= 0.2 * expected_m, "a straight command drives straight", local)
            robot.base.stop()
            robot.clock.sleep(0.3)
            by_odom_m = self.state(robot).odom.distance_to(before)
            by_referee_m = robot.referee.latest(0.5).pose.distance_to(truth_before)
            allowed_m = 0.1 * by_referee_m + 2 * self.pose_tolerance_m
            check(abs(by_odom_m - by_referee_m) <= allowed_m, "odometry and referee agree", (by_odom_m, by_referee_m))

    def test_base_left_is_positive_and_in_radians(self) -> None:
        with self.connected() as robot:
            before = self.state(robot).odom
            truth_before = robot.referee.latest(0.5).pose
            let_through = self.drive(robot, Velocity(0.0, self.turn_rad_s), 1.0)
            robot.base.stop()
            robot.clock.sleep(0.3)
            expected_rad = sum(v.angular_rad_s for v in let_through) / len(let_through)
            turned_rad = wrap_angle(self.state(robot).odom.yaw_rad - before.yaw_rad)
            check(
                abs(turned_rad - expected_rad) <= 0.25 * expected_rad,
                "odometry is in radians, counter-clockwise positive",
                (turned_rad, expected_rad),
            )
            true_rad = wrap_angle(robot.referee.latest(0.5).pose.yaw_rad - truth_before.yaw_rad)
            allowed_rad = 0.1 * expected_rad + 2 * self.pose_tolerance_rad
            check(abs(turned_rad - true_rad) <= allowed_rad, "odometry and referee agree", (turned_rad, true_rad))

    def test_base_command_expires(self) -> None:
        with self.connected() as robot:
            wish = self.at_speed(robot)
            robot.base.command(wish)
            begin = self.state(robot).odom
            robot.clock.sleep(EXPIRY_S / 2)
            check(self.state(robot).halt is Halt.NONE, "a command lives for a while", self.state(robot).halt)
            robot.clock.sleep(EXPIRY_S / 2 + 0.1)
            check(self.state(robot).halt is Halt.EXPIRED, "a command expires after 0.2 s", self.state(robot).halt)
            self.stays(robot, 0.5, "after expiry the wheels stay at zero")
            coasted_m = self.state(robot).odom.distance_to(begin)
            check(coasted_m <= wish.linear_m_s * (EXPIRY_S + 0.15), "an expired command stops the robot", coasted_m)

    def test_base_stop_is_immediate(self) -> None:
        with self.connected() as robot:
            wish = self.at_speed(robot)
            begin = self.state(robot).odom
            robot.base.stop()
            self.stays(robot, 0.5, "after stop() the wheels stay at zero")
            travelled_m = self.state(robot).odom.distance_to(begin)
            check(travelled_m <= wish.linear_m_s * 0.1 + 0.002, "stop() bypasses every ramp", travelled_m)
            robot.base.stop()

    def test_base_emergency_stop_latches_until_released(self) -> None:
        with self.connected() as robot:
            wish = self.at_speed(robot)
            robot.base.emergency_stop()
            let_through = self.drive(robot, wish, 0.3)
            check(set(let_through) == {Velocity()}, "an e-stop lets no command through", let_through)
            check(self.state(robot).halt is Halt.E_STOP, "the state says e_stop", self.state(robot).halt)
            robot.base.stop()
            self.stays(robot, 0.3, "an e-stop holds against every command", wish=Velocity(0.0, self.turn_rad_s))
            robot.base.release_emergency_stop()
            self.stays(robot, 0.3, "after release the robot stays until a new command")
            self.at_speed(robot)

    def test_base_emergency_stop_outlives_the_connection(self) -> None:
        with self.connected() as robot:
            robot.base.emergency_stop()
            robot.close()
            robot.connect()
            robot.clock.sleep(self.start_s)
            self.stays(robot, 0.3, "reconnecting does not release an e-stop", wish=self.forward(robot))
            robot.base.release_emergency_stop()

    def test_base_refuses_what_is_not_finite_with_wheels_at_zero(self) -> None:
        with self.connected() as robot:
            for value in NOT_FINITE:
                for bad in (Velocity(value, 0.0), Velocity(0.0, value)):
                    self.drive(robot, Velocity(0.0, self.turn_rad_s), 0.3)
                    begin = self.state(robot).odom
                    with refused(InvalidCommand, "a velocity that is not finite is refused"):
                        robot.base.command(bad)
                    self.stays(robot, 0.1, "a refused velocity leaves the wheels at zero")
                    turned_rad = abs(wrap_angle(self.state(robot).odom.yaw_rad - begin.yaw_rad))
                    check(turned_rad <= self.turn_rad_s * 0.1 + 0.01, "a refused velocity stops at once", turned_rad)

    def test_base_close_leaves_the_wheels_at_zero(self) -> None:
        with self.connected() as robot:
            wish = self.at_speed(robot)
            before = robot.referee.latest(0.5).pose
            robot.base.close()
            robot.clock.sleep(1.0)
            travelled_m = robot.referee.latest(0.5).pose.distance_to(before)
            # Loose, because the pose from before may be old; still far below 1 s of driving on.
            allowed_m = wish.linear_m_s * 0.5 + 2 * self.pose_tolerance_m
            check(travelled_m <= allowed_m, "close() leaves the wheels at zero", travelled_m)


class ContactConformance(Harness):
    """``hal.Base`` at a wall. Inherit it as well, with a ``make_robot`` that faces a flat wall within ``wall_m``.

    Attributes:
        wall_m: no more free floor than this lies ahead of the robot's front.
    """

    wall_m: ClassVar[float] = 0.5

    @contextmanager
    def at_wall(self) -> Iterator[Robot]:
        """A robot that has just driven into the wall, still being told to go on."""
        with self.connected() as robot:
            wish = self.forward(robot)
            for _ in range(math.ceil((self.wall_m / wish.linear_m_s + 2) / 0.02)):
                robot.base.command(wish)
                robot.clock.sleep(0.02)
                if self.state(robot).bumper:
                    break
            check(bool(self.state(robot).bumper & Zone.CENTER), "a wall ahead presses the centre bumper")
            yield robot

    def test_contact_stops_within_5_mm_and_holds(self) -> None:
        with self.at_wall() as robot:
            touched = self.state(robot).odom
            let_through = self.drive(robot, self.forward(robot), 0.5)
            check(set(let_through) == {Velocity()}, "contact refuses every forward command", let_through)
            check(self.state(robot).halt is Halt.CONTACT, "the state says contact", self.state(robot).halt)
            travelled_m = self.state(robot).odom.distance_to(touched)
            check(travelled_m <= 0.005, "the robot travels at most 5 mm after first contact", travelled_m)

    def test_contact_refuses_arcs_whole_and_allows_turning(self) -> None:
        with self.at_wall() as robot:
            arc = Velocity(self.forward(robot).linear_m_s, self.turn_rad_s)
            self.stays(robot, 0.3, "an arc into a pressed zone is refused whole: it would slide", wish=arc)
            for sign in (1, -1):
                before = self.state(robot).odom
                self.drive(robot, Velocity(0.0, sign * self.turn_rad_s), 0.5)
                turned_rad = wrap_angle(self.state(robot).odom.yaw_rad - before.yaw_rad)
                check(sign * turned_rad > 0.05, "turning on the spot is allowed in contact", turned_rad)

    def test_contact_is_a_level_that_clears_on_backing_off(self) -> None:
        with self.at_wall() as robot:
            self.stays(robot, 0.3, "contact lasts while the bumper is pressed", wish=self.forward(robot))
            check(bool(self.state(robot).bumper), "a pressed bumper stays pressed")
            self.drive(robot, Velocity(-self.forward(robot).linear_m_s / 2, 0.0), 1.0)
            state = self.state(robot)
            check(not state.bumper and state.halt is Halt.NONE, "backing off clears the contact", state)


class HeadConformance(Harness):
    """``hal.Head``."""

    def test_head_limits_are_sane_while_disconnected(self) -> None:
        limits = self.make_robot().head.limits
        check(limits.min_pan_rad <= 0 <= limits.max_pan_rad, "pan limits are ordered around zero", limits)
        check(limits.min_tilt_rad <= 0 <= limits.max_tilt_rad, "tilt limits are ordered around zero", limits)
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
            tilt_rad = limits.min_tilt_rad / 2
            for pan, tilt, goal in (
                (0.0, tilt_rad, (0.0, tilt_rad)),
                (100.0, -100.0, (limits.max_pan_rad, limits.min_tilt_rad)),
                (-100.0, 100.0, (limits.min_pan_rad, limits.max_tilt_rad)),
                (0.0, 0.0, (0.0, 0.0)),
            ):
                before_ns = robot.clock.now_ns()
                commanded = robot.head.command(pan, tilt)
                check(robot.clock.now_ns() - before_ns <= seconds_to_ns(0.1), "command() does not wait")
                check(np.allclose(commanded, goal), "command() returns the angles clipped to the limits", commanded)
                check(robot.head.state(0.2).moving, "the head says that it moves as soon as it is told to")
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


class CameraConformance(Harness):
    """``hal.Camera``."""

    def test_camera_info_is_sane_while_disconnected(self) -> None:
        info = self.make_robot().camera.info
        k = info.intrinsics
        check(k.width > 0 and k.height > 0 and k.fx > 0 and k.fy > 0, "intrinsics are positive", k)
        check(0 < k.cx < k.width and 0 < k.cy < k.height, "the principal point lies in the image", k)
        check(0 <= info.depth_min_m < info.depth_max_m <= 100, "the depth range is ordered and in metres", info)
        check(0 <= info.depth_unit_m <= 0.01, "the depth unit is in metres", info.depth_unit_m)
        check(info.rate_hz > 0, "the rate is positive", info.rate_hz)

    def test_camera_delivers_a_pair_exposed_after_the_asked_instant(self) -> None:
        with self.connected() as robot:
            info = robot.camera.info
            shape = (info.intrinsics.height, info.intrinsics.width)
            asked_ns = robot.clock.now_ns()
            kept: list[tuple[np.ndarray, np.ndarray]] = []
            for _ in range(3):
                frame = robot.camera.capture(asked_ns, timeout_s=1.0)
                check(frame.stamp_ns >= asked_ns, "a frame is exposed at or after the asked instant", frame.stamp_ns)
                check(frame.stamp_ns <= robot.clock.now_ns(), "a frame is not stamped in the future")
                late_s = ns_to_seconds(frame.stamp_ns - asked_ns)
                check(late_s <= 0.1 + 3 / info.rate_hz, "it is the first such frame", f"{late_s:.3f} s later")
                check(frame.rgb.dtype == np.uint8 and frame.rgb.shape == (*shape, 3), "rgb is uint8 (H, W, 3)")
                check(frame.depth_m.dtype == np.float32 and frame.depth_m.shape == shape, "depth is float32 (H, W)")
                check(frame.semantic is None, "there is no segmentation unless asked for")
                measured = frame.depth_m[frame.depth_m != 0]
                inside = (measured >= info.depth_min_m - 1e-6) & (measured <= info.depth_max_m + 1e-6)
                check(bool(inside.all()), "depth is 0 or metres within the sensor's range")
                if info.depth_unit_m:
                    lattice = measured / info.depth_unit_m
                    check(bool(np.allclose(lattice, np.round(lattice), atol=0.02)), "depth is whole depth units")
                kept.append((frame.rgb, frame.rgb.copy()))
                asked_ns = frame.stamp_ns + 1
            check(all(np.array_equal(now, then) for now, then in kept), "a delivered frame is never overwritten")

    def test_camera_gives_up_in_time(self) -> None:
        with self.connected() as robot:
            before_ns = robot.clock.now_ns()
            with refused(StaleData, "capture() raises StaleData at its timeout"):
                robot.camera.capture(before_ns + 60 * NS_PER_S, timeout_s=0.3)
            waited_s = ns_to_seconds(robot.clock.now_ns() - before_ns)
            check(waited_s <= 0.3 + 0.2, "capture() respects its timeout", f"{waited_s:.3f} s")

    def test_camera_segments_exactly_when_it_says_so(self) -> None:
        with self.connected() as robot:
            info = robot.camera.info
            if not info.has_semantic:
                with refused(DeviceFault, "a camera without segmentation refuses to deliver it"):
                    robot.camera.capture(robot.clock.now_ns(), timeout_s=1.0, semantic=True)
                return
            semantic = robot.camera.capture(robot.clock.now_ns(), timeout_s=1.0, semantic=True).semantic
            check(semantic is not None, "segmentation that is asked for is delivered")
            assert semantic is not None
            check(semantic.dtype == np.int32, "segmentation is int32", semantic.dtype)
            check(semantic.shape == (info.intrinsics.height, info.intrinsics.width), "segmentation is (H, W)")
            check(int(semantic.min()) >= -1, "segmentation is an object's index, or -1", semantic.min())


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
                known = cov if np.isfinite(cov[2, 2]) else cov[:2, :2]  # some know the position only
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
            wish = self.at_speed(robot)
            self.drive(robot, wish, 0.3)
            end_ns = robot.clock.now_ns() - NS_PER_S // 20
            for localizer in self._localizers(robot):
                poses = [localizer.at(end_ns - i * NS_PER_S // 50, timeout_s=1.0).pose for i in range(10)]
                travelled_m = poses[0].distance_to(poses[-1])
                expected_m = wish.linear_m_s * 9 / 50
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


class RobotConformance(BaseConformance, HeadConformance, CameraConformance, LocalizerConformance):
    """The whole robot: override ``make_robot`` and name the class ``Test...``."""

    def _uses(self, robot: Robot) -> dict[str, Callable[[], object]]:
        now_ns = robot.clock.now_ns()
        return {
            "base.state": lambda: robot.base.state(1.0),
            "base.command": lambda: robot.base.command(Velocity()),
            "base.stop": robot.base.stop,
            "base.emergency_stop": robot.base.emergency_stop,
            "base.release_emergency_stop": robot.base.release_emergency_stop,
            "head.state": lambda: robot.head.state(1.0),
            "head.command": lambda: robot.head.command(0.0, 0.0),
            "camera.capture": lambda: robot.camera.capture(now_ns, 1.0),
            "localizer.latest": lambda: robot.localizer.latest(1.0),
            "localizer.at": lambda: robot.localizer.at(now_ns, 1.0),
            "localizer.arrivals": lambda: robot.localizer.arrivals(),
            "referee.latest": lambda: robot.referee.latest(1.0),
            "referee.at": lambda: robot.referee.at(now_ns, 1.0),
        }

    def _all_disconnected(self, robot: Robot, when: str) -> None:
        for name, use in self._uses(robot).items():
            with refused(NotConnected, f"{name} raises NotConnected {when}"):
                use()

    def test_robot_raises_not_connected_before_and_after_its_connection(self) -> None:
        robot = self.make_robot()
        self._all_disconnected(robot, "before connect()")
        with robot:
            robot.clock.sleep(self.start_s)
            for use in self._uses(robot).values():
                use()
        self._all_disconnected(robot, "after close()")

    def test_robot_connects_and_closes_any_number_of_times(self) -> None:
        robot = self.make_robot()
        robot.close()
        for _ in range(2):
            robot.connect()
            robot.connect()
            robot.clock.sleep(self.start_s)
            self.state(robot)
            robot.close()
            robot.close()

    def test_robot_closes_when_its_user_fails(self) -> None:
        robot = self.make_robot()
        try:
            with robot:
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            self._all_disconnected(robot, "after a with block that raised")

    def test_robot_is_connected_whole_or_not_at_all(self) -> None:
        robot = self.make_robot()
        broken = replace(robot, referee=cast(Localizer, _Unplugged()))
        with refused(DeviceFault, "connect() reports the device that failed"):
            broken.connect()
        whole = self._uses(robot)
        for name in ("base.state", "head.state", "camera.capture", "localizer.latest"):
            with refused(NotConnected, f"a failed connect() closes what was open; {name} raises NotConnected"):
                whole[name]()

    def test_robot_stands_where_it_is_placed(self) -> None:
        if not self.can_place:
            return
        with self.connected() as robot:
            here = robot.referee.latest(0.5).pose
            goal = replace(here, yaw_rad=wrap_angle(here.yaw_rad + 1.0))
            tilt_rad = robot.head.limits.min_tilt_rad / 3
            robot.placer.place(goal, tilt_rad)
            for localizer in self._localizers(robot):
                if localizer.info.frame != "map":
                    continue
                for estimate in (localizer.at(robot.clock.now_ns(), 1.0), localizer.latest(0.5)):
                    found = estimate.pose
                    check(found.distance_to(goal) <= self.pose_tolerance_m, "the robot is where it was placed", found)
                    off_rad = abs(wrap_angle(found.yaw_rad - goal.yaw_rad))
                    check(off_rad <= self.pose_tolerance_rad, "the robot faces where it was placed", found)
            head = robot.head.state(0.2)
            check(not head.moving and abs(head.tilt_rad - tilt_rad) <= math.radians(1), "the head is placed", head)
            self.stays(robot, 0.3, "a placed robot stands still")

    def test_clock_is_monotonic_and_does_not_oversleep(self) -> None:
        with self.connected() as robot:
            clock = robot.clock
            before_ns = clock.now_ns()
            check(isinstance(before_ns, int), "stamps are integer nanoseconds", type(before_ns))
            clock.sleep_until(before_ns - NS_PER_S)
            check(clock.now_ns() - before_ns <= seconds_to_ns(0.05), "a deadline in the past is no wait")
            deadline_ns = clock.now_ns() + seconds_to_ns(0.1)
            clock.sleep_until(deadline_ns)
            late_s = ns_to_seconds(clock.now_ns() - deadline_ns)
            check(0 <= late_s <= 0.1, "sleep_until() returns at its deadline", f"{late_s:.3f} s late")


class _Unplugged(Device):
    """A device that cannot be opened."""

    def connect(self) -> None:
        raise DeviceFault("conformance: this device is unplugged", "none: the suite unplugged it")

    def close(self) -> None:
        pass
