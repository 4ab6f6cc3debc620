"""The recorder beside `rosbag record` in `bench console`."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.slow
@pytest.mark.exhaustive
def test_rosbag_and_recorder_are_measured_on_the_same_frames(spawn: Any) -> None:
    bench = spawn("-c", "from tests.benchmarks.ros_locobot.rosbag_rows import rows; print(rows(2.0)[0])")
    assert bench.process.wait(120) == 0, bench.output
    bench.stop()
    assert "id='log_vs_rosbag'" in bench.output
    assert " value=None" not in bench.output
    assert "recorder " in bench.output
