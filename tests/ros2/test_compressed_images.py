"""A camera whose images are compressed, on the other DDS vendor: color and depth as from raw topics, units asserted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises_naming

from drivers.ros.camera.driver import NOMINAL, RosCamera
from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.errors import DepthUnit
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros2.options import Ros2Options
from drivers.ros2.session import Session
from robot_runtime.common import config
from robot_runtime.errors import DeviceFault
from tests.ros2.emulators import camera

DEPTH = "/camera/aligned_depth_to_color/image_raw"


def made(domain: int, suffix: str, **camera_options: Any) -> RosCamera:
    options = {
        "family": "create3",
        "camera": {"mount": "habitat", **camera_options},
        "topics": {"color": "/camera/color/image_raw/compressed", "depth": f"{DEPTH}{suffix}"},
        "network": {"domain_id": domain},
    }
    chosen = config.parse(options, Ros2Options, "test")
    return RosCamera(Session(chosen.network, RosClock(0.5, 5.0)), chosen, NOMINAL, MotionHistory())


@pytest.mark.parametrize(
    ("kind", "suffix", "unit_m", "within_m"),
    [
        pytest.param("png", "/compressed", 0.001, 0.0, marks=pytest.mark.exhaustive),
        ("compressedDepth", "/compressedDepth", 0.001, 0.0),
        ("quantized", "/compressedDepth", 0.0, 0.01),
    ],
)
def test_they_are_as_raw_ones(
    emulator: Any, ros2_domain: int, kind: str, suffix: str, unit_m: float, within_m: float
) -> None:
    emulator("camera", "--depth", kind)
    found = made(ros2_domain, suffix)
    found.connect()
    try:
        frame = found.capture(0, 3.0)
        assert found.info.depth_unit_m == unit_m
        assert found.info.intrinsics.fx == 60.0
    finally:
        found.close()
    assert np.abs(frame.rgb.astype(int) - camera.color()).mean() < 5, "JPEG"
    assert frame.depth_m.dtype == np.float32
    np.testing.assert_allclose(frame.depth_m, camera.depth_m(), atol=max(within_m, 1e-6))
    assert not frame.depth_m[0].any()


def test_depth_that_was_lost_or_has_another_unit_is_refused(emulator: Any, ros2_domain: int) -> None:
    lossy = emulator("camera", "--depth", "jpeg")
    with raises_naming(DeviceFault, f"{DEPTH}/compressed", "jpeg", "16 bits"):
        made(ros2_domain, "/compressed").connect()
    lossy.close()
    emulator("camera", "--depth", "compressedDepth")
    with raises_naming(DepthUnit, f"{DEPTH}/compressedDepth", "median"):
        made(ros2_domain, "/compressedDepth", depth_min_m=0.01, depth_max_m=0.05).connect()
