"""Shared part of the conformance tests: making a robot, driving it, and naming a broken rule."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from robot_runtime.common.geometry import wrap_angle
from robot_runtime.errors import RuntimeFault, StaleData
from robot_runtime.hal import BaseState, Robot, Velocity

NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
EXPIRY_S = 0.2
LATE_S = 0.3


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
    """Base of the conformance tests: settings of a subclass, and helpers.

    Attributes:
        start_s: time after ``connect()`` within which every stream must have delivered.
        drive_m_s: speed of the checks that drive.
        turn_rad_s: speed of the checks that turn.
        pose_tolerance_m: accuracy of localizer and referee at rest.
        pose_tolerance_rad: accuracy of their heading at rest.
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

    def drive(self, robot: Robot, requested: Velocity, seconds: float) -> list[Velocity]:
        """Repeat a command at half the base's rate, at least every 50 ms; return what was let through each time."""
        period_s = min(0.05, 2 / robot.base.info.rate_hz)
        let_through = []
        for _ in range(math.ceil(seconds / period_s)):
            let_through.append(robot.base.command(requested))
            robot.clock.sleep(period_s)
        return let_through

    def forward(self, robot: Robot) -> Velocity:
        """The speed at which the checks drive."""
        return Velocity(min(self.drive_m_s, robot.base.info.max_linear_m_s), 0.0)

    def settling_s(self, robot: Robot) -> float:
        """Time after a command until the wheels drive as commanded, by what is known of the base's motors."""
        return robot.base.motors.model.settling_s

    def at_speed(self, robot: Robot) -> Velocity:
        """Drive forward until the ramp is over.

        On a computer that is busy for longer than a command lives, the ramp restarts; so the drive is repeated twice.
        """
        requested = self.forward(robot)
        ramp_s = requested.linear_m_s / robot.base.info.max_linear_accel_m_s2
        for _ in range(3):
            reached = self.drive(robot, requested, ramp_s + 0.2 + self.settling_s(robot))[-1]
            if math.isclose(reached.linear_m_s, requested.linear_m_s, rel_tol=0.01):
                return requested
        raise AssertionError(
            f"rule broken: a repeated command that nothing forbids is let through after its ramp; found {reached}"
        )

    def state(self, robot: Robot) -> BaseState:
        """The base's state, as the motion loop reads it.

        On a busy computer a reading may come late; a base that delivers is fresh again within `LATE_S`.
        """
        try:
            return robot.base.state(max_age_s=0.1)
        except StaleData:
            robot.clock.sleep(LATE_S)
            return robot.base.state(max_age_s=0.1)

    def stays(self, robot: Robot, seconds: float, rule: str, requested: Velocity | None = None) -> None:
        """Fail unless the robot does not move for a while, despite any command.

        It comes to rest before, within 0.2 s and the delays of its motors.
        """
        rest_s = EXPIRY_S + self.settling_s(robot)
        if requested is None:
            robot.clock.sleep(rest_s)
        else:
            self.drive(robot, requested, rest_s)
        before = self.state(robot)
        if requested is None:
            robot.clock.sleep(seconds)
        else:
            self.drive(robot, requested, seconds)
        after = self.state(robot)
        check(after.odom.distance_to(before.odom) < 0.002, rule, f"{before.odom} then {after.odom}")
        check(abs(wrap_angle(after.odom.yaw_rad - before.odom.yaw_rad)) < 0.01, rule, f"{before.odom}, {after.odom}")
