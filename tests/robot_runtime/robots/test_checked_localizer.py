"""Checks around every localizer and referee that measures poses; a simulator's truth and fusions have none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic

from drivers.fake.driver import make_robot
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import LocalizerInfo, PoseEstimate, PoseStatus, Robot
from robot_runtime.hal.pose_history import PoseHistory
from robot_runtime.hal.stand_ins import HistoryLocalizer
from robot_runtime.localization.pose_monitor import PoseMonitor
from robot_runtime.robots.checked_localizer import CheckedLocalizer, checked
from robot_runtime.robots.loader import RobotContext, load_robot

MS = 1_000_000


class Measured:
    """A fake robot whose localizer and referee are a tracker that a test fills, beside an odometry that it fills."""

    def __init__(self) -> None:
        self.clock = SimulatedClock(MS)
        self.tracked, self.driven = PoseHistory("tracker", "map"), PoseHistory("odometry", "odom")
        tracker = HistoryLocalizer(LocalizerInfo("tracker", "map", 50.0), self.clock, self.tracked)
        odometry = HistoryLocalizer(LocalizerInfo("odometry", "odom", 50.0), self.clock, self.driven)
        robot = make_robot(RobotContext(None, None, 0), "fake", {}, "test")
        robot = replace(robot, clock=self.clock, localizer=tracker, referee=tracker, odometry=odometry)
        self.robot = checked(robot, None)
        self.robot.localizer.connect()

    def drive(self, steps: int, follows: bool) -> None:
        """0.2 m/s for some periods of 20 ms."""
        for _ in range(steps):
            self.clock.sleep(0.02)
            now_ns, last = self.clock.now_ns(), self.driven.newest()
            x_m = 0.004 + (0.0 if last is None else last.pose.x_m)
            self.driven.add(PoseEstimate(now_ns, SE2(x_m, 0.0, 0.0), "odom"))
            seen = self.tracked.newest()
            x_m = x_m if follows or seen is None else seen.pose.x_m
            self.tracked.add(PoseEstimate(now_ns, SE2(x_m, 0.0, 0.0), "map"))


def test_localizer_and_referee_that_are_one_stay_one() -> None:
    robot = Measured().robot
    assert isinstance(robot.localizer, CheckedLocalizer)
    assert robot.localizer is robot.referee
    assert robot.devices.count(robot.localizer) == 1


def test_a_frozen_source_is_lost_by_every_way_of_reading_it() -> None:
    site = Measured()
    source = site.robot.referee
    site.drive(50, follows=True)
    assert source.latest(0.5).status is PoseStatus.OK
    site.drive(50, follows=False)
    latest = source.latest(0.5)
    assert latest.status is PoseStatus.LOST
    assert source.at(latest.stamp_ns - 5 * MS, 0.1).status is PoseStatus.LOST
    arrived = source.arrivals()
    assert [arrived.estimates[40].status, arrived.estimates[-1].status] == [PoseStatus.OK, PoseStatus.LOST]
    assert [event.kind for event in arrived.events] == ["frozen"]


def test_reading_once_in_ten_seconds_misses_nothing() -> None:
    site = Measured()
    site.drive(100, follows=True)
    site.drive(100, follows=False)
    site.drive(200, follows=False)
    assert site.robot.referee.latest(0.5).status is PoseStatus.LOST


def test_events_of_the_checks_are_published_once() -> None:
    site = Measured()
    events: list[Any] = []
    monitor = PoseMonitor(site.robot, events.append, lambda *_: None)
    monitor.begin()
    site.drive(30, follows=True)
    site.drive(50, follows=False)
    monitor.publish()
    monitor.publish()
    assert [event.kind for event in events] == ["frozen"]


def test_a_placement_is_no_jump() -> None:
    site = Measured()
    source = site.robot.localizer
    site.drive(20, follows=True)
    source.latest(0.5)
    site.tracked.clear()
    site.clock.sleep(0.02)
    site.tracked.add(PoseEstimate(site.clock.now_ns(), SE2(5.0, 5.0, 1.0), "map"))
    assert source.latest(0.5).status is PoseStatus.OK
    source.expect(SE2(1.0, 1.0, 0.0), 0.1, 0.1)
    site.clock.sleep(0.02)
    site.tracked.add(PoseEstimate(site.clock.now_ns(), SE2(1.0, 1.0, 0.0), "map"))
    assert source.latest(0.5).status is PoseStatus.OK


def test_a_source_without_odometry_is_checked_by_itself() -> None:
    site = Measured()
    robot = replace(site.robot, odometry=None, localizer=site.robot.localizer.source)  # type: ignore[attr-defined]
    source = checked(replace(robot, referee=robot.localizer), synthetic.scene()).localizer
    source.connect()
    site.clock.sleep(0.02)
    site.tracked.add(PoseEstimate(site.clock.now_ns(), SE2(90.0, 0.0, 0.0), "map"))
    assert source.latest(0.5).status is PoseStatus.LOST
    source.close()


ROBOT = """name: lab
driver: drivers.fake.driver.make_robot
localizer:
  driver: drivers.marvelmind.driver.make_localizer
  options: {beacons_in_map: {x_m: 0, y_m: 0, yaw_deg: 0}}
"""
FUSED = """name: lab
driver: drivers.fake.driver.make_robot
localizer: {driver: robot_runtime.localization.fused.make_localizer}
"""


def loaded(folder: Path, text: str) -> Robot:
    (folder / "lab.yaml").write_text(text)
    return load_robot(str(folder / "lab.yaml"), RobotContext(None, None, 0))


@pytest.mark.parametrize(("text", "is_checked"), [(ROBOT, True), (FUSED, False)])
def test_a_robots_file_gets_checked_sources(tmp_path: Path, text: str, is_checked: bool) -> None:
    robot = loaded(tmp_path, text)
    assert isinstance(robot.localizer, CheckedLocalizer) is is_checked
    assert not isinstance(robot.referee, CheckedLocalizer), "a simulator's truth"
