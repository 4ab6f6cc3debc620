"""Marvelmind beacons on a simulated robot: its driver, over a real pty, in lock-step with simulated time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from drivers.marvelmind.driver import make_localizer
from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import LocalizerConformance
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Localizer, Robot
from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot
from robot_runtime.scenes.scene import Scene

TURNED = {"x_m": 1.0, "y_m": -2.0, "yaw_deg": 75.0}
HERE = SE2(-1.0, 0.5, 0.6)

Build = Callable[..., tuple[Robot, Localizer]]


@pytest.fixture
def build(sim: Callable[..., Robot]) -> Build:
    """A simulated robot and beacons on it, with options of the beacons and of their emulator."""

    def make(seed: int = 0, emulator: dict[str, object] | None = None, **options: object) -> tuple[Robot, Localizer]:
        robot = sim(seed=seed)
        beacons = make_localizer(
            robot, RobotContext(None, None, seed), {"emulator": emulator or {}, **options}, "test options"
        )
        return replace(robot, localizer=beacons), beacons

    return make


class TestBeaconConformance(LocalizerConformance):
    """``marvelmind-pair`` for the policy and ``marvelmind`` for the referee, on ``sim``; noise is 2 cm and 6.5°."""

    pose_tolerance_m = 0.1
    pose_tolerance_rad = math.radians(25)

    @pytest.fixture(autouse=True)
    def _in_room(self, room: Scene) -> None:
        self.scene = room

    def make_robot(self) -> Robot:
        parts = DeviceOverrides(localizer="marvelmind-pair", referee="marvelmind")
        return load_robot("sim", RobotContext(self.scene, None, seed=1), parts)


class TestFusedBeaconConformance(LocalizerConformance):
    """``fused-marvelmind`` for policy and referee, told where the robot begins, as an episode would."""

    pose_tolerance_m = 0.06

    @pytest.fixture(autouse=True)
    def _in_room(self, room: Scene) -> None:
        self.scene = room

    def make_robot(self) -> Robot:
        parts = DeviceOverrides(localizer="fused-marvelmind", referee="fused-marvelmind")
        return load_robot("sim-noisy", RobotContext(self.scene, None, seed=1), parts)

    @contextmanager
    def connected(self) -> Iterator[Robot]:
        with super().connected() as robot:
            robot.localizer.expect(SE2(), 0.05, math.radians(3))
            robot.referee.expect(SE2(), 0.05, math.radians(3))
            robot.clock.sleep(1.0)
            yield robot


def standing(robot: Robot, seconds: float = 20.0) -> np.ndarray:
    """Poses (N, 3) of a robot that stands at ``HERE``, less the truth."""
    robot.placer.place(HERE, 0.0)
    robot.clock.sleep(seconds)
    poses = [estimate.pose for estimate in robot.localizer.arrivals().estimates]
    return np.array([(p.x_m - HERE.x_m, p.y_m - HERE.y_m, p.yaw_rad - HERE.yaw_rad) for p in poses])


@pytest.mark.parametrize("packet", ["cm", "mm", "mm_unix"])
def test_poses_are_true_within_the_stated_noise(build: Build, packet: str) -> None:
    robot, beacons = build(
        beacons_in_map=TURNED, lever_m=[0.1, 0.05], pair={"yaw_offset_deg": 30.0}, emulator={"packet": packet}
    )
    with robot:
        errors = standing(robot)
        said = np.sqrt(np.diag(beacons.latest(0.5).covariance))
    assert 150 <= len(errors) <= 160
    assert np.abs(errors.mean(0)).max() < 4 * said.max() / math.sqrt(len(errors))
    assert np.allclose(errors.std(0), said, rtol=0.25)


def test_stamps_are_those_of_the_ultrasound(build: Build) -> None:
    robot, beacons = build(emulator={"latency_s": 0.15})
    with robot:
        robot.clock.sleep(2.0)
        mark = beacons.arrivals().mark
        while not (arrived := beacons.arrivals(mark).estimates):
            robot.clock.sleep(0.005)
        late_ns = robot.clock.now_ns() - arrived[0].stamp_ns
        stamps = [estimate.stamp_ns for estimate in beacons.arrivals().estimates]
    assert late_ns == pytest.approx(0.15e9, abs=11e6)
    assert set(np.diff(stamps)) == {125_000_000}


def test_the_same_seed_gives_the_same_poses_and_another_does_not(build: Build) -> None:
    noisy = {"outlier_probability": 0.1, "dropout_probability": 0.05, "faults": [{"kind": "noisy"}]}

    def run(seed: int) -> np.ndarray:
        robot, _ = build(seed, noisy)
        with robot:
            return standing(robot, 8.0)

    first = run(0)
    assert np.array_equal(first, run(0))
    assert not np.array_equal(first, run(1))


def test_noise_on_the_line_costs_fixes_and_no_more(build: Build) -> None:
    robot, beacons = build(emulator={"faults": [{"kind": "noisy"}]})
    with robot:
        errors = standing(robot)
        assert beacons.arrivals().events == ()
    assert 90 <= len(errors) <= 140
    assert np.abs(errors[:, :2]).max() < 0.1


def test_nothing_of_the_old_place_arrives_after_the_robot_was_put_elsewhere(build: Build) -> None:
    robot, beacons = build(emulator={"latency_s": 0.4})
    with robot:
        robot.placer.place(HERE, 0.0)
        robot.clock.sleep(1.0)
        mark = beacons.arrivals().mark
        there = SE2(-HERE.x_m, -HERE.y_m, 0.0)
        robot.placer.place(there, 0.0)
        robot.clock.sleep(1.5)
        arrived = beacons.arrivals(mark)
    assert arrived.restarted
    assert len(arrived.estimates) >= 8
    assert all(estimate.pose.distance_to(there) < 0.1 for estimate in arrived.estimates)


def test_dropouts_are_series_without_a_fix(build: Build) -> None:
    robot, beacons = build(emulator={"dropout_probability": 0.02, "dropout_s": 2.0})
    with robot:
        standing(robot, 60.0)
        arrived = beacons.arrivals()
    kinds = [event.kind for event in arrived.events]
    assert set(kinds) == {"no_fix", "fix"}
    gaps_s = np.diff([estimate.stamp_ns for estimate in arrived.estimates]) / 1e9
    assert all(gap == 0.125 or 2.0 <= gap <= 2.126 or gap > 4.0 for gap in gaps_s)
    assert (gaps_s > 1.9).any()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"kind": "no_fix"}, "hedgehog 11 has no fix"),
        ({"kind": "silent"}, "0.5 s is allowed"),
        ({"kind": "repeating"}, "sends one measurement again and again"),
    ],
)
def test_a_source_that_says_nothing_new_is_stale_with_its_reason(
    build: Build, fault: dict[str, object], reason: str
) -> None:
    robot, beacons = build(emulator={"faults": [{**fault, "from_s": 3.0, "to_s": 6.0}]})
    with robot:
        robot.clock.sleep_until(2_900_000_000)
        beacons.latest(0.5)
        robot.clock.sleep_until(5_000_000_000)
        with pytest.raises(StaleData, match=reason):
            beacons.latest(0.5)
        robot.clock.sleep_until(7_000_000_000)
        beacons.latest(0.5)


def test_a_cable_that_is_pulled_is_an_error_at_the_next_read(build: Build) -> None:
    robot, beacons = build(emulator={"faults": [{"kind": "unplugged", "from_s": 2.0, "to_s": 3.0}]})
    with robot:
        robot.clock.sleep(1.9)
        beacons.latest(0.5)
        robot.clock.sleep(0.2)
        with pytest.raises(DeviceFault, match="port "):
            beacons.latest(0.5)
        robot.clock.sleep(2.0)
        with pytest.raises(DeviceFault, match="port "):
            beacons.arrivals()
        beacons.close()
        beacons.connect()
        robot.clock.sleep(1.0)
        beacons.latest(0.5)


def test_a_hedgehog_that_is_not_where_it_is_thought_to_be_is_off_by_that(build: Build) -> None:
    robot, _ = build(emulator={"mounting": {"map_from_beacons": {"x_m": 0.0, "y_m": 0.5, "yaw_rad": 0.0}}})
    with robot:
        errors = standing(robot, 10.0)
    assert errors[:, :2].mean(0) == pytest.approx((0.0, -0.5), abs=0.02)
