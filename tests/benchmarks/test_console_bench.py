"""Rows of ``bench console``."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.benchmarks.runtime import console_logs, console_rows


def test_a_press_lasts_until_the_next_time_at_zero() -> None:
    stopped_ns = [1_000_000, 5_000_000]
    assert [console_rows.until_rest_ms(stopped_ns, at_ns) for at_ns in (0, 1_000_000, 2_000_000)] == [1.0, 0.0, 3.0]
    assert console_rows.until_rest_ms(stopped_ns, 6_000_000) == math.inf  # a robot that never stopped is no fast one


@pytest.mark.slow  # a robot in real time, and pages in processes of their own
def test_stops_and_lost_pages_are_measured(monkeypatch: pytest.MonkeyPatch, many_processes: None) -> None:
    monkeypatch.setattr(console_rows, "LOST", 1)
    monkeypatch.setattr(console_rows, "ROUND_S", 0.1)
    monkeypatch.setattr(console_rows.os, "cpu_count", lambda: 0)
    rows = {row.id: row for row in console_rows.stop_rows(presses=2, seed=0)}
    assert set(rows) == {"stop_p99_ms", "stop_max_ms", "machine_p99_ms", "page_lost_to_zero_ms"}
    assert all(row.value is not None and math.isfinite(row.value) for row in rows.values())
    lost_ms = rows["page_lost_to_zero_ms"].value
    assert lost_ms is not None
    assert lost_ms > 400


@pytest.mark.slow  # the learned policy is loaded
def test_recorded_frames_are_counted_only_if_they_are_in_the_log_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < (console_logs.log_row(0.5).value or 0) <= console_logs.HZ
    monkeypatch.setattr(np, "array_equal", lambda *_: False)
    assert console_logs.log_row(0.1).value == 0
