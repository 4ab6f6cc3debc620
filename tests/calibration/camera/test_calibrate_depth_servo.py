"""Depth sensors that measure wrong, servos that turn wrong, and how wrong they are found to be."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from mounted import TRUE, ShiftedSource, guide, robot, with_source
from raising import raises_naming

from calibration.camera.depth import DepthProcedure, Sample, line
from calibration.camera.raw_images import point_head
from calibration.camera.tilt_servo import Approach, TiltServoProcedure
from calibration.procedure import calibrate
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common import config
from robot_runtime.errors import CalibrationFailed, ForeignCalibration, InvalidCommand
from robot_runtime.imaging.rig import load_calibration
from robot_runtime.robots.calibration_file import Stamp, load_content, write_calibration
from robot_runtime.robots.corrected_head import KIND, TiltServo

SIZE_M = 0.16


@pytest.mark.slow
def test_scale_and_bias_of_a_depth_sensor(tmp_path: Path) -> None:
    out = tmp_path / "depth.yaml"
    with robot(tmp_path) as made:
        assert made.simulation is not None
        source = ShiftedSource(made.clock, made.simulation, scale=1.02, bias_m=-0.012)
        procedure = DepthProcedure(SIZE_M, tilts_deg=(0.0,), moves=(Displacement(forward_m=0.3),) * 4)
        file = calibrate(procedure, with_source(made, source), guide(tmp_path), out, 30)
    found = load_calibration(out, "sim", "SN9")
    for measured_m in (0.8, 1.5, 2.5):
        assert found.depth_unit_m * 1000 * measured_m + found.depth_bias_m == pytest.approx(
            1.02 * measured_m - 0.012, abs=0.006
        )
    assert file.stamp.held_out["error_mm"] < 5 < file.stamp.held_out["uncorrected_error_mm"]
    assert (found.color, found.depth) == (source.COLOR, source.DEPTH)
    assert (tmp_path / "depth.png").stat().st_size > 1000


def test_the_line_is_robust_against_a_tag_that_shines() -> None:
    random = np.random.default_rng(0)
    by_tag_m = np.linspace(0.8, 2.5, 20)
    measured_m = (by_tag_m - 0.01) / 0.98 + random.normal(0, 0.002, 20)
    measured_m[3] += 0.3
    found = line([Sample(*pair) for pair in zip(by_tag_m.tolist(), measured_m.tolist(), strict=True)])
    assert found.scale == pytest.approx(0.98, abs=0.003)
    assert found.bias_m == pytest.approx(0.01, abs=0.005)


def test_depth_needs_tags_near_and_far() -> None:
    with raises_naming(CalibrationFailed, "0 tags", "1.2 m"):
        DepthProcedure(SIZE_M).solve([])


@pytest.mark.slow
def test_zero_and_backlash_of_a_tilt_servo(tmp_path: Path) -> None:
    out = tmp_path / "servo.yaml"
    with robot(tmp_path, head={"tilt_zero_deg": 1.3, "tilt_backlash_deg": 0.8}) as made:
        file = calibrate(TiltServoProcedure(TRUE), made, guide(), out, 30)
    servo = load_content(out, TiltServo, KIND, "sim")
    for tilt_deg in (-45.0, -20.0, 0.0):
        for upward, side in ((True, -0.4), (False, 0.4)):
            looks_deg = math.degrees(servo.camera_tilt_rad(math.radians(tilt_deg), upward))
            assert looks_deg == pytest.approx(tilt_deg + 1.3 + side, abs=0.1)
    assert servo.backlash_deg == pytest.approx(0.8, abs=0.1)
    assert file.stamp.held_out["tilt_deg"] < 0.1


@pytest.mark.slow
def test_a_corrected_head_points_the_camera_where_it_is_told(tmp_path: Path) -> None:
    servo_file = tmp_path / "servo.yaml"
    content = config.unparse(TiltServo(1.3, 1.0, 0.8))
    write_calibration(servo_file, Stamp.now(KIND, "sim", "", 30, "by hand", {}, {}), content)
    options = {"head": {"tilt_zero_deg": 1.3, "tilt_backlash_deg": 0.8}}
    with robot(tmp_path, tilt_servo=str(servo_file), **options) as made:
        assert made.simulation is not None
        for tilt_deg in (-30.0, -10.0, -20.0, -20.0, -50.0, 0.0):
            head = point_head(made, 0.3, math.radians(tilt_deg))
            pan_rad, looks_rad = made.simulation.head_angles()
            assert math.degrees(looks_rad) == pytest.approx(tilt_deg, abs=0.02)
            assert head.tilt_rad == pytest.approx(looks_rad, abs=1e-6)
            assert pan_rad == 0.3
        limits = made.head.limits
        assert made.head.command(0.0, 3.0) == (0.0, pytest.approx(limits.max_tilt_rad))
        assert math.degrees(limits.max_tilt_rad) == pytest.approx(90 + 1.3 - 0.4)
        with pytest.raises(InvalidCommand):
            made.head.command(0.0, math.nan)
    with raises_naming(ForeignCalibration, "'sim'"), robot(tmp_path, name="other", tilt_servo=str(servo_file)):
        pass


def test_a_servo_must_be_approached_from_both_sides() -> None:
    upward_only = [Approach(math.radians(angle), True, math.radians(angle)) for angle in range(-50, 0, 5)]
    with raises_naming(CalibrationFailed, 4):
        TiltServoProcedure(TRUE).solve(upward_only)


def test_a_servo_that_jumps_fails_on_what_was_held_out(tmp_path: Path) -> None:
    """No line goes through angles that scatter by degrees."""
    random = np.random.default_rng(0)
    approaches = [
        Approach(math.radians(angle), upward, math.radians(angle + random.normal(0, 2)))
        for angle in range(-50, -15, 5)
        for upward in (True, False)
    ]
    procedure = TiltServoProcedure(TRUE)
    training, held_out = procedure.split(approaches)
    figures = procedure.verify(procedure.solve(training).solution, held_out)
    assert figures["tilt_deg"] > procedure.limits["tilt_deg"]
