"""Conformance tests of a base, in the open and at a wall."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.conformance.harness import EXPIRY_S, NOT_FINITE, Harness, check, refused
from robot_runtime.errors import InvalidCommand, StaleData
from robot_runtime.hal import Halt, Robot, Velocity, Zone


class BaseConformance(Harness):
    """``hal.Base``."""

    def test_base_info_is_sane_while_disconnected(self) -> None:
        info = self.make_robot().base.info
        for name in ("radius_m", "max_linear_m_s", "max_angular_rad_s", "max_linear_accel_m_s2"):
            value = getattr(info, name)
            check(math.isfinite(value) and value > 0, f"BaseInfo.{name} is positive", value)
        check(info.max_angular_accel_rad_s2 > 0, "BaseInfo.max_angular_accel_rad_s2 is positive")
        check(info.rate_hz * EXPIRY_S >= 2, "the base reports at least twice within a command's life", info.rate_hz)
        check(0.05 <= info.radius_m <= 1, "BaseInfo.radius_m is in meters", info.radius_m)

    def test_base_state_is_fresh_ordered_and_complete(self) -> None:
        with self.connected() as robot:
            stamps = []
            for _ in range(50):
                state = self.state(robot)
                now_ns = robot.clock.now_ns()
                check(state.stamp_ns <= now_ns, "a state is not stamped in the future")
                check(now_ns - state.stamp_ns <= seconds_to_ns(0.1), "a state is at most as old as the reader allows")
                stamps.append(state.stamp_ns)
                robot.clock.sleep(0.02)
            check(stamps == sorted(stamps), "stamps never decrease", stamps)
            seen_hz = (len(set(stamps)) - 1) / max(1e-9, ns_to_seconds(stamps[-1] - stamps[0]))
            check(seen_hz >= min(25, robot.base.info.rate_hz / 2), "states come at the rate that info states", seen_hz)
            check(all(map(math.isfinite, (state.odom.x_m, state.odom.y_m, state.odom.yaw_rad))), "odometry is finite")
            check(all(isinstance(z, Zone) for z in (state.bumper, state.cliff, state.wheel_drop)), "zones are Zones")
            volts, fraction = state.battery_v, state.battery_fraction
            check(math.isnan(volts) or volts > 0, "BaseState.battery_v is in volts, NaN if unknown", volts)
            is_share = math.isnan(fraction) or 0 <= fraction <= 1
            check(is_share, "BaseState.battery_fraction is 0..1, NaN if unknown", fraction)

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
            started = self.state(robot)
            self.drive(robot, self.forward(robot), 0.4)
            ended = self.state(robot)
            local = ended.odom.relative_to(started.odom)
            expected_m = ns_to_seconds(ended.stamp_ns - started.stamp_ns) * self.forward(robot).linear_m_s
            check(abs(local.x_m - expected_m) <= 0.2 * expected_m, "odometry is in meters, forward positive", local)
            check(abs(local.y_m) <= 0.2 * expected_m, "a straight command drives straight", local)
            robot.base.stop()
            robot.clock.sleep(0.3 + self.settling_s(robot))
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
            robot.clock.sleep(0.3 + self.settling_s(robot))
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
            requested = self.at_speed(robot)
            robot.base.command(requested)
            begin = self.state(robot).odom
            robot.clock.sleep(EXPIRY_S / 2)
            check(self.state(robot).halt is Halt.NONE, "a command lives for a while", self.state(robot).halt)
            robot.clock.sleep(EXPIRY_S / 2 + 0.1)
            check(self.state(robot).halt is Halt.EXPIRED, "a command expires after 0.2 s", self.state(robot).halt)
            self.stays(robot, 0.5, "after expiry the wheels stay at zero")
            coasted_m = self.state(robot).odom.distance_to(begin)
            allowed_m = robot.base.motors.model.travel_m(requested.linear_m_s, EXPIRY_S + 0.15)
            check(coasted_m <= allowed_m, "an expired command stops the robot", coasted_m)

    def test_base_stop_is_immediate(self) -> None:
        with self.connected() as robot:
            requested = self.at_speed(robot)
            begin = self.state(robot).odom
            robot.base.stop()
            self.stays(robot, 0.5, "after stop() the wheels stay at zero")
            travelled_m = self.state(robot).odom.distance_to(begin)
            allowed_m = robot.base.motors.model.travel_m(requested.linear_m_s, 0.1) + 0.002
            check(travelled_m <= allowed_m, "stop() bypasses every ramp", travelled_m)
            robot.base.stop()

    def test_base_emergency_stop_latches_until_released(self) -> None:
        with self.connected() as robot:
            requested = self.at_speed(robot)
            operator = threading.Thread(target=robot.base.emergency_stop)  # who has a thread of their own
            operator.start()
            operator.join()
            let_through = self.drive(robot, requested, 0.3)
            check(set(let_through) == {Velocity()}, "an e-stop lets no command through", let_through)
            check(self.state(robot).halt is Halt.E_STOP, "the state says e_stop", self.state(robot).halt)
            robot.base.stop()
            self.stays(robot, 0.3, "an e-stop holds against every command", requested=Velocity(0.0, self.turn_rad_s))
            robot.base.release_emergency_stop()
            self.stays(robot, 0.3, "after release the robot stays until a new command")
            self.at_speed(robot)

    def test_base_emergency_stop_outlives_the_connection(self) -> None:
        with self.connected() as robot:
            robot.base.emergency_stop()
            robot.close()
            robot.connect()
            robot.clock.sleep(self.start_s)
            self.stays(robot, 0.3, "reconnecting does not release an e-stop", requested=self.forward(robot))
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
                    allowed_rad = robot.base.motors.model.travel_m(self.turn_rad_s, 0.1) + 0.01
                    check(turned_rad <= allowed_rad, "a refused velocity stops at once", turned_rad)

    def test_base_close_leaves_the_wheels_at_zero(self) -> None:
        with self.connected() as robot:
            requested = self.at_speed(robot)
            before = robot.referee.latest(0.5).pose
            robot.base.close()
            robot.clock.sleep(1.0)
            travelled_m = robot.referee.latest(0.5).pose.distance_to(before)
            # Loose, because the pose from before may be old; still far below 1 s of driving on.
            allowed_m = robot.base.motors.model.travel_m(requested.linear_m_s, 0.5) + 2 * self.pose_tolerance_m
            check(travelled_m <= allowed_m, "close() leaves the wheels at zero", travelled_m)


class ContactConformance(Harness):
    """``hal.Base`` at a wall. Inherit it as well, with a ``make_robot`` that faces a flat wall within ``wall_m``.

    Attributes:
        wall_m: no more free floor than this lies ahead of the robot's front.
    """

    wall_m: ClassVar[float] = 0.5

    @contextmanager
    def at_wall(self) -> Iterator[Robot]:
        """A robot that has just driven into the wall, with the command repeated."""
        with self.connected() as robot:
            requested = self.forward(robot)
            for _ in range(math.ceil((self.wall_m / requested.linear_m_s + 2) / 0.02)):
                robot.base.command(requested)
                robot.clock.sleep(0.02)
                if self.state(robot).bumper:
                    break
            check(bool(self.state(robot).bumper & Zone.CENTER), "a wall ahead presses the center bumper")
            yield robot

    def test_contact_stops_within_5_mm_and_holds(self) -> None:
        """The 5 mm are those of a base without delay; others drive on for the delay of their motors."""
        with self.at_wall() as robot:
            touched = self.state(robot).odom
            requested = self.forward(robot)
            let_through = self.drive(robot, requested, 0.5 + self.settling_s(robot))
            check(set(let_through) == {Velocity()}, "contact refuses every forward command", let_through)
            check(self.state(robot).halt is Halt.CONTACT, "the state says contact", self.state(robot).halt)
            travelled_m = self.state(robot).odom.distance_to(touched)
            allowed_m = 0.005 + robot.base.motors.model.travel_m(requested.linear_m_s, 0.0)
            check(travelled_m <= allowed_m, "the robot travels at most 5 mm after first contact", travelled_m)

    def test_contact_refuses_arcs_whole_and_allows_turning(self) -> None:
        with self.at_wall() as robot:
            arc = Velocity(self.forward(robot).linear_m_s, self.turn_rad_s)
            self.stays(
                robot, 0.3, "an arc into a pressed zone is refused, turning included: it would slide", requested=arc
            )
            for sign in (1, -1):
                before = self.state(robot).odom
                self.drive(robot, Velocity(0.0, sign * self.turn_rad_s), 0.5 + self.settling_s(robot))
                turned_rad = wrap_angle(self.state(robot).odom.yaw_rad - before.yaw_rad)
                check(sign * turned_rad > 0.05, "turning on the spot is allowed in contact", turned_rad)

    def test_contact_is_a_level_that_clears_on_backing_off(self) -> None:
        with self.at_wall() as robot:
            self.stays(robot, 0.3, "contact lasts while the bumper is pressed", requested=self.forward(robot))
            check(bool(self.state(robot).bumper), "a pressed bumper stays pressed")
            self.drive(robot, Velocity(-self.forward(robot).linear_m_s / 2, 0.0), 1.0)
            state = self.state(robot)
            check(not state.bumper and state.halt is Halt.NONE, "backing off clears the contact", state)
