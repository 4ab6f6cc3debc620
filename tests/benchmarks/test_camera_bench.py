"""Rows of ``bench camera`` about the cameras' own SDKs."""

from __future__ import annotations

import platform
import sys

import numpy as np
import pytest

from drivers.azure_kinect import sdk_transform
from tests.benchmarks.devices import azure_kinect, realsense

kinect_only = pytest.mark.skipif(
    sys.version_info >= (3, 13) or platform.machine() != "x86_64",
    reason="the Kinect SDK is not packaged for this Python",
)


@kinect_only
@pytest.mark.slow
def test_the_kinects_bench_measures_itself_beside_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(azure_kinect, "FRAMES", 3)
    monkeypatch.setattr(azure_kinect, "OUR_TIMES", 3)
    monkeypatch.setattr(sdk_transform, "measure_in_subprocess", lambda times: {"milliseconds": 1000.0})
    rows = azure_kinect.rows(100, 0)
    assert [row.id for row in rows] == ["kinect_vs_sdk", "mkv_fps"]
    for row in rows:
        assert row.value is not None
        assert row.value > 0


@kinect_only
def test_the_kinects_bench_says_why_the_sdk_cannot_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "Transform engine create failed with error code: 204"
    monkeypatch.setattr(sdk_transform, "measure_in_subprocess", lambda times: {"reason": reason})
    row = azure_kinect.compare_with_sdk(lambda color, depth: None, np.zeros(0, np.uint8), np.zeros(0, np.uint16))
    assert row.value is None
    assert "error code: 204" in row.note


@pytest.mark.slow
def test_the_realsenses_reprojection_is_measured_beside_the_sdks_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realsense, "ROUNDS", 3)
    speed, error = realsense.rows(100, 0)
    assert speed.id == "realsense_vs_align"
    assert speed.value is not None
    assert speed.value > 0
    assert error.rival_value is not None
    assert error.value is not None
    assert error.value < 1 < error.rival_value
