"""Driven on the simulated robot whose wheels and beacons err, in a frame that is turned, shifted and off its axis."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from raising import raises_naming
from rich.console import Console

from calibration.motion.localizer_alignment import LocalizationCalibration
from calibration.operator_guide import Guide
from calibration.procedure import calibrate
from drivers.marvelmind.driver import make_localizer as make_beacons
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import CalibrationFailed, ForeignCalibration
from robot_runtime.hal import Robot
from robot_runtime.localization.alignment import Alignment, load_alignment
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from sim_bridge.robot.localizer import LocalizerOptions, SimLocalizer

FRAME = SE2(3.0, -2.0, math.radians(140))
HEDGEHOG = SE2(0.10, -0.05, math.radians(90))
START = SE2(2.25, 1.0, math.radians(135))
CORNER = START @ SE2(1.0, 0.0, math.radians(90))
POINTS = [corner @ SE2(along_m, 0.0, 0.0) for corner in (START, CORNER) for along_m in (0.0, 0.5, 1.0)]


@pytest.fixture
def robot() -> Iterator[Robot]:
    made = load_robot("sim-noisy", RobotContext(load_scene(find_scene("apartment")), None, 0))
    simulation = made.simulation
    assert simulation is not None
    options = LocalizerOptions(rate_hz=8, latency_s=0.08, noise_m=0.02, noise_deg=2)
    beacons = SimLocalizer(
        "beacons", "beacons", made.clock, lambda: FRAME.inverse() @ simulation.pose() @ HEDGEHOG, options
    )
    made.clock.add_listener(beacons.on_step)
    with replace(made, localizer=beacons) as connected:
        yield connected


def run(procedure: LocalizationCalibration, robot: Robot, out: Path) -> Alignment:
    calibrate(procedure, robot, Guide(Console(file=io.StringIO()), None, attended=False), out, 30)
    return load_alignment(out, "sim-noisy")


def assert_recovers(found: Alignment, yaw_offset_rad: float = -HEDGEHOG.yaw_rad) -> None:
    assert found.map_from_source.distance_to(FRAME) < 0.04
    assert abs(wrap_angle(found.map_from_source.yaw_rad - FRAME.yaw_rad)) < math.radians(1.0)
    assert found.lever_m == pytest.approx((HEDGEHOG.x_m, HEDGEHOG.y_m), abs=0.03)
    assert found.yaw_offset_rad == pytest.approx(yaw_offset_rad, abs=math.radians(2))


def test_a_guided_drive_finds_frame_and_hedgehog(robot: Robot, tmp_path: Path) -> None:
    out = tmp_path / "alignment.yaml"
    assert_recovers(run(LocalizationCalibration(START, lever_m=None), robot, out))
    with raises_naming(ForeignCalibration, "sim-noisy"):
        load_alignment(out, "another")


def test_surveyed_points_find_them_without_odometry(robot: Robot, tmp_path: Path) -> None:
    without = replace(robot, odometry=None)
    assert_recovers(run(LocalizationCalibration(SE2(), POINTS, None), without, tmp_path / "alignment.yaml"))


def test_a_drive_against_a_wall_is_given_up_and_writes_nothing(robot: Robot, tmp_path: Path) -> None:
    wall = SE2(2.0, 1.2, math.radians(90))
    with raises_naming(CalibrationFailed, "4 of 11", "contact"):
        run(LocalizationCalibration(wall), robot, tmp_path / "alignment.yaml")
    assert not (tmp_path / "alignment.yaml").exists()


@pytest.mark.slow
def test_a_hedgehog_as_it_is_can_be_calibrated_and_the_file_puts_its_poses_into_the_map(tmp_path: Path) -> None:
    """The commands' way: a pair whose angle counts from elsewhere, calibrated, then named by its file."""
    context = RobotContext(load_scene(find_scene("apartment")), None, 0)
    mounting = {
        "map_from_beacons": {"x_m": FRAME.x_m, "y_m": FRAME.y_m, "yaw_rad": FRAME.yaw_rad},
        "lever_m": [HEDGEHOG.x_m, HEDGEHOG.y_m],
        "pair": {"yaw_offset_deg": 50.0},
    }
    options = {"pair": {}, "emulator": {"mounting": mounting}}
    out = tmp_path / "alignment.yaml"
    made = load_robot("sim-noisy", context)
    with replace(made, localizer=make_beacons(made, context, options, "test")) as robot:
        assert robot.localizer.info.frame == "beacons"
        assert_recovers(run(LocalizationCalibration(START, lever_m=None), robot, out), math.radians(50))
    made = load_robot("sim-noisy", context)
    with replace(made, localizer=make_beacons(made, context, {**options, "alignment": str(out)}, "test")) as robot:
        assert robot.localizer.info.frame == "map"
        robot.placer.place(CORNER, 0.0)
        robot.clock.sleep(5.0)
        poses = [estimate.pose for estimate in robot.localizer.arrivals().estimates]
    assert (
        SE2(float(np.median([p.x_m for p in poses])), float(np.median([p.y_m for p in poses]))).distance_to(CORNER)
        < 0.04
    )
    off_rad = [wrap_angle(p.yaw_rad - CORNER.yaw_rad) for p in poses]
    assert abs(float(np.median(off_rad))) < math.radians(5)


def test_a_drive_needs_odometry(robot: Robot, tmp_path: Path) -> None:
    with raises_naming(CalibrationFailed, "odometry", "--points"):
        run(LocalizationCalibration(START), replace(robot, odometry=None), tmp_path / "alignment.yaml")
