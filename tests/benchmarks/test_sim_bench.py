"""Frames per second of the simulator by sensors, image size and processes."""

from __future__ import annotations

import pytest

from tests.benchmarks.sim import throughput


@pytest.mark.slow
def test_every_combination_of_sensors_sizes_and_processes_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Savva et al. 2019, table 4."""
    monkeypatch.setattr(throughput, "SIZES", (32, 64))
    monkeypatch.setattr(throughput, "PROCESSES", (1, 2))
    rows = list(throughput.throughput_rows(0, 0.05))
    assert [row.id for row in rows][:3] == [
        "frames_rgb_depth_32_x1",
        "frames_rgb_depth_64_x1",
        "frames_object_ids_32_x1",
    ]
    assert len(rows) == 8
    assert all(row.value > 0 for row in rows if row.value is not None)
