"""Latency of a camera's stamps, against a simulated camera whose latency is known."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from raising import raises_naming
from rich.console import Console

from calibration.camera.latency import BaseSweep, LatencyProcedure, SolvedLatency, turn_between
from calibration.operator_guide import Guide
from calibration.procedure import calibrate
from robot_runtime.errors import CalibrationFailed, ForeignCalibration
from robot_runtime.hal import Intrinsics, Robot
from robot_runtime.imaging.latency import KIND, CameraLatency
from robot_runtime.robots.calibration_file import load_content
from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import TrainingCamera

SMALL = TrainingCamera(320, 180, 60.0, 0.88, 0.3, 9.0, False)


def robot(*changes: str) -> Robot:
    """A simulated robot with an emulated RealSense, whose driver knows nothing of latency."""
    modes = ("color=640x360", "depth=424x240", "latency_s=0.0", "emulated.latency_s=0.065", "emulated.depth_noise={}")
    context = RobotContext(load_scene(find_scene("apartment")), SMALL, 0)
    return load_robot("sim", context, DeviceOverrides(camera="realsense", camera_options=(*modes, *changes)))


def quiet() -> Guide:
    return Guide(Console(file=io.StringIO()), None, attended=False)


@pytest.mark.slow
def test_latency_is_found_to_five_milliseconds_and_taken_off(tmp_path: Path) -> None:
    out = tmp_path / "latency.yaml"
    with robot() as connected:
        file = calibrate(LatencyProcedure(sweeps=2, sweep_s=0.8), connected, quiet(), out, 30)
    assert load_content(out, CameraLatency, KIND, "sim").latency_s == pytest.approx(0.065, abs=0.005)
    assert file.stamp.held_out["latency_difference_ms"] < 2
    with pytest.raises(ForeignCalibration):
        load_content(out, CameraLatency, KIND, "lab-2")
    with robot(f"imaging.latency={out}") as connected:
        asked_ns = connected.clock.now_ns()
        frame = connected.camera.capture(asked_ns, 1.0)
        assert asked_ns <= frame.stamp_ns <= connected.clock.now_ns() - 0.06e9


def test_a_latency_in_force_is_corrected_not_replaced() -> None:
    assert SolvedLatency(left_s=-0.004, before_s=0.065).latency.latency_s == pytest.approx(0.061)


def sweep(latency_s: float, noise_rad: float = 0.0, seen: float = 1.0) -> BaseSweep:
    """A swing of 0.3 rad to both sides, seen at 30 Hz for 3 s."""
    odom_ns = np.arange(0, int(4e9), int(1e7))
    stamps_ns = np.arange(int(0.6e9), int(3.6e9), int(1e9 / 30))

    def heading(at_ns: np.ndarray) -> np.ndarray:
        return 0.3 * np.sin(2 * math.pi * at_ns / 1.7e9)

    turns = seen * np.diff(heading(stamps_ns - latency_s * 1e9))
    turns += np.random.default_rng(0).normal(0, noise_rad, turns.size) if noise_rad else 0
    return BaseSweep(stamps_ns, turns, odom_ns, heading(odom_ns))


@pytest.mark.parametrize("latency_s", [-0.03, 0.0, 0.0213, 0.2, 0.41])
def test_any_latency_is_found_in_noisy_pictures(latency_s: float) -> None:
    procedure = LatencyProcedure()
    fit = procedure.solve([sweep(latency_s, math.radians(0.05), seen=1.03)] * 2)
    assert fit.content["latency_s"] == pytest.approx(latency_s, abs=0.003)
    assert procedure.verify(fit.solution, [sweep(latency_s + 0.004)])["latency_difference_ms"] == pytest.approx(
        4, abs=3
    )


def test_pictures_that_say_nothing_are_no_calibration() -> None:
    blind = replace(sweep(0.0), turns_rad=np.full(90, np.nan))
    with raises_naming(CalibrationFailed, "latency", "0 turns"):
        LatencyProcedure().solve([blind])
    still = replace(sweep(0.0), odom_rad=np.zeros(400))
    with raises_naming(CalibrationFailed, "odometry", "intrinsics"):
        LatencyProcedure().solve([still])


@pytest.mark.parametrize("turn_deg", [-3.0, 0.4, 2.0])
def test_a_turn_is_seen_in_two_pictures(turn_deg: float) -> None:
    intrinsics = Intrinsics.from_hfov(640, 360, 70.0)
    texture = np.random.default_rng(1).integers(0, 255, (90, 400), np.uint8)

    def view(yaw_rad: float) -> np.ndarray:
        """A wall of a cylinder around the camera."""
        x, y = np.meshgrid(np.arange(640), np.arange(360))
        azimuth = yaw_rad - np.arctan2(x - intrinsics.cx, intrinsics.fx)
        height = (y - intrinsics.cy) / np.hypot(x - intrinsics.cx, intrinsics.fx)
        columns, rows = (azimuth * 100 + 200).astype(np.float32), (height * 100 + 45).astype(np.float32)
        gray = cv2.remap(texture, columns, rows, cv2.INTER_CUBIC)
        return np.repeat(np.maximum(gray, 1)[..., None], 3, axis=2)

    seen = turn_between(view(0.3), view(0.3 + math.radians(turn_deg)), intrinsics)
    assert math.degrees(seen) == pytest.approx(turn_deg, abs=0.06)
    assert math.isnan(turn_between(np.full((360, 640, 3), 90, np.uint8), view(0.0), intrinsics))
