"""Camera mounts: the chain from the floor to the lens, and its file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, Offset, quaternion_rpy, rotation_rpy
from robot_runtime.errors import ConfigError
from robot_runtime.robots.camera_mount import CameraMount, load_mount

angles = st.floats(-1.5, 1.5)


@given(angles, angles, angles)
def test_a_camera_on_the_axes_looks_where_the_runtime_says(yaw: float, pan: float, tilt: float) -> None:
    mount = CameraMount(pan_joint_m=(0.0, 0.0, 0.88))
    sensor = mount.sensor(SE2(1.0, -2.0, yaw), pan, tilt)
    optical = sensor[:3, :3] @ rotation_rpy(*OPTICAL_RPY_RAD)
    np.testing.assert_allclose(optical, rotation_rpy(0, 0, yaw) @ optical_axes(pan, tilt), atol=1e-12)
    np.testing.assert_allclose(sensor[:3, 3], (1.0, -2.0, 0.88), atol=1e-12)


def test_offsets_add_up_along_the_chain() -> None:
    mount = CameraMount((0.1, 0.0, 0.5), (0.0, 0.0, 0.05), Offset((0.2, 0.0, 0.0)), Offset((0.0, 0.02, 0.0)))
    assert mount.height_m == pytest.approx(0.55)
    np.testing.assert_allclose(mount.sensor(SE2(), 0, 0)[:3, 3], (0.3, 0.02, 0.55))
    # Panned to the left by 90 degrees, what was ahead of the pan axis is to its left.
    np.testing.assert_allclose(mount.sensor(SE2(), math.pi / 2, 0)[:3, 3], (0.08, 0.2, 0.55), atol=1e-12)
    # Looking straight up, what was ahead of the tilt axis is above it.
    np.testing.assert_allclose(mount.sensor(SE2(), 0, math.pi / 2)[:3, 3], (0.1, 0.02, 0.75), atol=1e-12)


@given(angles, angles, angles)
def test_quaternions_and_matrices_are_the_same_rotation(roll: float, pitch: float, yaw: float) -> None:
    x, y, z, w = quaternion_rpy(roll, pitch, yaw)
    expected = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    np.testing.assert_allclose(rotation_rpy(roll, pitch, yaw), expected, atol=1e-12)


# Heights as the families' robot descriptions add up to.
@pytest.mark.parametrize(
    ("name", "height_m"),
    [("habitat", 0.88), ("pyrobot-kobuki", 0.591), ("pyrobot-create", 0.549), ("interbotix", 0.562)],
)
def test_presets(name: str, height_m: float) -> None:
    assert load_mount(config.find_preset("mounts", name)).height_m == pytest.approx(height_m, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("tilt_joint_m: [0, 0, 0]", "pan_joint_m"),
        ("pan_joint_m: [0, 0]", "pan_joint_m"),
        ("pan_joint_m: [0, 0, .nan]", "pan_joint_m"),
        ("pan_joint_m: [0, 0, 1]\ncamera: {xyz: [0, 0, 0]}", "camera.xyz"),
        ("pan_joint_m: [0, 0, 1]\ncamera: {rpy_deg: [0, 'a', 0]}", "camera.rpy_deg"),
    ],
)
def test_a_malformed_file_names_its_field(tmp_path: Path, text: str, field: str) -> None:
    path = tmp_path / "mount.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=field) as caught:
        load_mount(path)
    assert str(path) in caught.value.message
