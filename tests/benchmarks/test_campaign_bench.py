"""Rows of ``bench campaign``, with few campaigns."""

from __future__ import annotations

import pytest

from tests.benchmarks.runtime import campaign_simulation, campaign_statistics
from tests.benchmarks.runtime.planted_failures import cause_rows


def test_prints_rows_that_reach_their_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in (("CAMPAIGNS", 60), ("EQUAL_CAMPAIGNS", 200), ("SEQUENCES", 20), ("_BLOCK", 100)):
        monkeypatch.setattr(campaign_statistics, name, count)
    rows = {row.id: row for row in campaign_statistics.sequential_rows(0)}
    assert rows.keys() == {
        "episodes_vs_unpaired_.5_.7",
        "episodes_vs_unpaired_.6_.7",
        "episodes_vs_fieldtrial_r0",
        "episodes_vs_fieldtrial_r.8",
        "false_alarm_rate",
        "sequence_coverage",
    }
    assert rows["episodes_vs_unpaired_.5_.7"].reached
    assert rows["false_alarm_rate"].reached
    assert rows["episodes_vs_fieldtrial_r.8"].reached


@pytest.mark.slow
def test_rows_of_simulation_planner_and_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in (("REALITIES", 4), ("WIDTHS", 1), ("LONG_EPISODES", 20), ("COVERED_EPISODES", 20)):
        monkeypatch.setattr(campaign_simulation, name, count)
    monkeypatch.setattr(campaign_statistics, "PLANNED", 10)
    for name, count in (("FORECASTS", 3), ("REPEATS", 50), ("PILOT_PAIRS", 40), ("MAX_PAIRS", 20)):
        monkeypatch.setattr(campaign_statistics, name, count)
    found = [*campaign_simulation.simulation_rows(0), *campaign_statistics.planner_rows(0), *cause_rows(0, 10)]
    assert {row.id for row in found} == {
        "control_variate_width_r.8",
        "control_variate_coverage",
        "control_variate_width_r0",
        "power_table_s",
        "planner_error_pct",
        "causes_right",
        "causes_wrong",
    }
    assert all(row.value is not None for row in found)
