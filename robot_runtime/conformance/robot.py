"""Conformance tests of a complete robot, in addition to those of its parts."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from robot_runtime.common.clock import NS_PER_S, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.conformance.base import BaseConformance
from robot_runtime.conformance.camera import CameraConformance
from robot_runtime.conformance.harness import check, refused
from robot_runtime.conformance.head import HeadConformance
from robot_runtime.conformance.localizer import LocalizerConformance
from robot_runtime.errors import DeviceFault, NotConnected
from robot_runtime.hal import Device, Localizer, Robot, Velocity


class RobotConformance(BaseConformance, HeadConformance, CameraConformance, LocalizerConformance):
    """The complete robot: override ``make_robot`` and name the class ``Test...``."""

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
            _, tilt_rad = robot.head.limits.clip(0.0, robot.head.limits.min_tilt_rad / 3)
            robot.placer.place(goal, tilt_rad)
            for localizer in self._localizers(robot):
                if localizer.info.frame != "map":
                    continue
                for estimate in (localizer.at(robot.clock.now_ns(), 1.0), localizer.latest(0.5)):
                    reached = estimate.pose
                    check(
                        reached.distance_to(goal) <= self.pose_tolerance_m, "the robot is where it was placed", reached
                    )
                    off_rad = abs(wrap_angle(reached.yaw_rad - goal.yaw_rad))
                    check(off_rad <= self.pose_tolerance_rad, "the robot faces where it was placed", reached)
            head = robot.head.state(0.2)
            check(not head.moving and abs(head.tilt_rad - tilt_rad) <= math.radians(1), "the head is placed", head)
            self.stays(robot, 0.3, "a placed robot stands still")

    def test_clock_is_monotonic_and_does_not_oversleep(self) -> None:
        with self.connected() as robot:
            clock = robot.clock
            before_ns = clock.now_ns()
            check(isinstance(before_ns, int), "stamps are integer nanoseconds", type(before_ns))
            clock.sleep_until(before_ns - NS_PER_S)
            check(clock.now_ns() - before_ns <= seconds_to_ns(0.05), "a deadline in the past causes no wait")
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
