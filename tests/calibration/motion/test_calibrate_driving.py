"""Odometry and actuation, calibrated on simulated robots whose errors are known."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from raising import raises_naming
from rich.console import Console

from calibration.motion.action_errors import ActuationProcedure
from calibration.motion.odometry import OdometryProcedure
from calibration.operator_guide import Guide
from calibration.procedure import calibrate
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import AlteredCalibration, CalibrationFailed, DeviceFault, ForeignCalibration, StaleData
from robot_runtime.hal import BaseState, Robot
from robot_runtime.motion.controller import MotionController
from robot_runtime.robots.action_errors import load_actuation
from robot_runtime.robots.calibration_file import load_content
from robot_runtime.robots.corrected_odometry import OdometryCalibration
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from sim_bridge.robot.localizer import LocalizerOptions, SimLocalizer

KOBUKI_M = (0.035, 0.23)
"""Radius and separation of its wheels."""

NOISE = {"linear_noise_m": 0.005, "angular_noise_rad": 0.01, "heading_noise_rad": 0.005}


@pytest.fixture(scope="module")
def apartment() -> Scene:
    return load_scene(find_scene("apartment"))


@contextmanager
def robot(folder: Path, scene: Scene, options: dict[str, object], **parts: object) -> Iterator[Robot]:
    """A simulated robot by a YAML file of its own, connected."""
    path = folder / "robot.yaml"
    document = {"name": "lab-1", "driver": "sim_bridge.robot.driver.make_robot", "options": options, **parts}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with load_robot(str(path), RobotContext(scene, None, 3)) as connected:
        yield connected


def quiet() -> Guide:
    return Guide(Console(file=io.StringIO()), None, attended=False)


@pytest.mark.slow
def test_wheels_are_found_to_half_a_per_cent(apartment: Scene, tmp_path: Path) -> None:
    linear, angular = 1.023, 0.981
    drift = {"linear_scale": linear, "angular_scale": angular, **NOISE}
    out = tmp_path / "odometry.yaml"
    with robot(tmp_path, apartment, {"odometry": drift}) as connected:
        file = calibrate(OdometryProcedure("wheels", *KOBUKI_M, rounds=4), connected, quiet(), out, 30)
    found = load_content(out, OdometryCalibration, "odometry", "lab-1")
    assert found.linear_scale == pytest.approx(linear, rel=0.005)
    assert found.angular_scale == pytest.approx(angular, rel=0.005)
    assert found.wheel_radius_m == pytest.approx(0.035 / linear, rel=0.005)
    assert found.wheel_separation_m == pytest.approx(0.230 * angular / linear, rel=0.005)
    assert max(file.stamp.held_out.values()) < 1.0
    assert file.stamp.residuals["linear_std_pct"] < 0.3
    with raises_naming(ForeignCalibration, "lab-1"):
        load_content(out, OdometryCalibration, "odometry", "lab-2")
    text = out.read_text(encoding="utf-8").replace("wheel_radius_m: 0.03", "wheel_radius_m: 0.04")
    out.write_text(text, encoding="utf-8")
    with pytest.raises(AlteredCalibration), robot(tmp_path, apartment, {}, odometry=str(out)):
        pass


def test_what_scales_mean_depends_on_where_the_heading_comes_from() -> None:
    gyro = OdometryCalibration.from_scales(1.02, 0.98, "gyro", 0.035, 0.23)
    assert (gyro.gyro_scale, gyro.wheel_separation_m) == (pytest.approx(1 / 0.98), None)
    # Wheels of radius r, b apart: a base that believes 0.035 and 0.23 reports these scales.
    radius_m, separation_m = 0.0341, 0.2345
    linear, angular = 0.035 / radius_m, 0.035 / radius_m * separation_m / 0.23
    wheels = OdometryCalibration.from_scales(linear, angular, "wheels", 0.035, 0.23)
    assert (wheels.wheel_radius_m, wheels.wheel_separation_m) == pytest.approx((radius_m, separation_m))


@pytest.mark.slow
def test_a_calibrated_robot_drives_what_it_is_told(apartment: Scene, tmp_path: Path) -> None:
    drift = {"linear_scale": 1.05, "angular_scale": 0.94}
    out = tmp_path / "odometry.yaml"
    with robot(tmp_path, apartment, {"odometry": drift}) as raw:
        calibrate(OdometryProcedure("wheels", *KOBUKI_M, rounds=2), raw, quiet(), out, 30)
    with robot(tmp_path, apartment, {"odometry": drift}, odometry=str(out)) as connected:
        connected.placer.place(SE2(2.25, 1.0, math.radians(135)), 0.0)
        motion = MotionController(connected.clock, connected.base, connected.head)
        start = connected.referee.latest(0.5).pose
        for command in (Displacement(forward_m=0.5), Displacement(turn_rad=1.5), Displacement(forward_m=0.25)):
            motion.execute(command)
        end = connected.referee.at(connected.clock.now_ns(), 0.5).pose.relative_to(start)
        expected = SE2(0.5) @ SE2(0.0, 0.0, 1.5) @ SE2(0.25)
        assert end.distance_to(expected) < 0.004
        assert end.yaw_rad == pytest.approx(1.5, abs=0.005)
        odometry = connected.odometry
        assert odometry is not None
        believed = odometry.at(connected.clock.now_ns(), 0.5).pose
        assert believed.distance_to(connected.base.state(0.1).odom) < 0.002
        trail = [estimate.pose for estimate in odometry.arrivals().estimates]
        assert math.dist((trail[-1].x_m, trail[-1].y_m), (believed.x_m, believed.y_m)) < 0.002
        connected.placer.place(SE2(2.0, 1.25, 0.0), 0.0)
        assert odometry.arrivals(1).restarted


MEAN = (0.012, -0.008, 0.03)
COVARIANCE = [[4e-4, 1.5e-4, 2e-4], [1.5e-4, 2.25e-4, -1e-4], [2e-4, -1e-4, 1.6e-3]]


def erring(folder: Path) -> dict[str, object]:
    """Options of a robot whose every action errs like that."""
    error = {"mean": list(MEAN), "covariance": COVARIANCE}
    actions = dict.fromkeys(("move_forward", "turn_left", "turn_right"), error)
    path = folder / "truth.yaml"
    path.write_text(yaml.safe_dump({"forward_m": 0.25, "turn_deg": 30.0, "actions": actions}), encoding="utf-8")
    return {"action_noise": {"model": "fitted", "file": str(path)}}


@pytest.mark.slow
def test_the_errors_of_actions_are_found_whole(apartment: Scene, tmp_path: Path) -> None:
    out = tmp_path / "actuation.yaml"
    with robot(tmp_path, apartment, erring(tmp_path)) as connected:
        file = calibrate(ActuationProcedure(0.25, 30.0, cycles=40), connected, quiet(), out, 30)
    model = load_actuation(out)
    truth = np.array(COVARIANCE)
    deviation = np.sqrt(np.diag(truth))
    for error in model.actions.values():
        assert error.count == 30
        assert np.array(error.mean) == pytest.approx(np.array(MEAN), abs=4 * (deviation / math.sqrt(30)).max())
        assert (np.abs(np.array(error.mean) - MEAN) <= 4 * deviation / math.sqrt(30)).all()
        assert np.sqrt(np.diag(error.matrix)) == pytest.approx(deviation, rel=0.45)
    # Of all three together, correlations too: every action errs alike here.
    pooled = np.mean([error.matrix for error in model.actions.values()], axis=0)
    scale = np.outer(deviation, deviation)
    assert pooled / scale == pytest.approx(truth / scale, abs=0.45)
    assert file.stamp.held_out["distance_ratio"] < 1.6


@pytest.mark.slow
def test_the_referees_own_scatter_is_taken_off(apartment: Scene, tmp_path: Path) -> None:
    with robot(tmp_path, apartment, {}) as connected:
        simulation = connected.simulation
        assert simulation is not None
        options = LocalizerOptions(rate_hz=20, noise_m=0.02, noise_deg=1.0)
        seen = SimLocalizer("beacons", "map", connected.clock, simulation.pose, options)
        connected.clock.add_listener(seen.on_step)
        seen.connect()
        watched = replace(connected, referee=seen)
        file = calibrate(ActuationProcedure(0.25, 30.0, cycles=24), watched, quiet(), tmp_path / "a.yaml", 30)
    # Two stands of 10 poses: 2 cm / sqrt(10) * sqrt(2) = 9 mm of scatter, of a robot that errs by nothing.
    assert file.stamp.residuals["move_forward_std_mm"] < 7
    assert file.stamp.residuals["turn_left_std_deg"] < 0.35


class NoHeading(SimLocalizer):
    """Knows positions."""

    def arrivals(self, after: int = 0):  # type: ignore[no-untyped-def]
        arrived = super().arrivals(after)
        unknown = np.diag([1e-4, 1e-4, np.inf])
        return replace(arrived, estimates=tuple(replace(e, covariance=unknown) for e in arrived.estimates))


def test_a_drive_that_cannot_be_measured_or_driven_says_so(apartment: Scene, tmp_path: Path) -> None:
    with robot(tmp_path, apartment, {}) as connected:
        simulation = connected.simulation
        assert simulation is not None
        blind = NoHeading("beacons", "map", connected.clock, simulation.pose, LocalizerOptions())
        connected.clock.add_listener(blind.on_step)
        blind.connect()
        with raises_naming(CalibrationFailed, "headings", "--referee"):
            OdometryProcedure("gyro", *KOBUKI_M, rounds=2).record(replace(connected, referee=blind), quiet())
        silent = SimLocalizer("beacons", "map", connected.clock, simulation.pose, LocalizerOptions(latency_s=9.0))
        silent.connect()
        with raises_naming(CalibrationFailed, "referee", "--referee"):
            OdometryProcedure("gyro", *KOBUKI_M, rounds=2).record(replace(connected, referee=silent), quiet())
        with raises_naming(CalibrationFailed, "contact"):
            ActuationProcedure(6.0, 30.0, cycles=2).record(connected, quiet())
    with raises_naming(CalibrationFailed, 0, "straight legs"):
        OdometryProcedure("gyro", *KOBUKI_M, rounds=2).solve([])


@pytest.mark.parametrize(
    "procedure", [OdometryProcedure("wheels", *KOBUKI_M, rounds=2), ActuationProcedure(0.25, 30.0, cycles=2)]
)
def test_a_device_that_fails_in_a_drive_is_named_with_its_remedy(
    procedure: OdometryProcedure | ActuationProcedure, apartment: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.yaml"
    with robot(tmp_path, apartment, {}) as connected:
        read, until_ns = connected.base.state, connected.clock.now_ns() + seconds_to_ns(4.0)

        def state(max_age_s: float) -> BaseState:
            if connected.clock.now_ns() > until_ns:
                raise StaleData("base: silent", "check its cable")
            return read(max_age_s)

        monkeypatch.setattr(connected.base, "state", state)
        with raises_naming(DeviceFault, "base: silent") as caught:
            calibrate(procedure, connected, quiet(), out, 30)
    assert caught.value.remedy == "check its cable"
    assert not out.exists()
