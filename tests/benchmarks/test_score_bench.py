"""Rows of ``bench score``, with and without its rivals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.runtime import geodesics, log_scoring, metrics

pytest.importorskip("fastdtw", reason="the bench's rivals are not installed")
pytest.importorskip("dtaidistance", reason="the bench's rivals are not installed")


@pytest.mark.slow
def test_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "DTW_NODES", 50)
    monkeypatch.setattr(log_scoring, "COUNTS", (4, 8))
    monkeypatch.setattr(log_scoring, "DIFFERENT", 2)
    monkeypatch.setattr(geodesics, "FLATS", ())
    metrics.score(count=10, pairs=2, seed=0, logs=True, bent=10, json=tmp_path / "rows.json")
    rows = {row["id"]: row for row in json.loads((tmp_path / "rows.json").read_text())["rows"]}
    assert set(rows) == {
        "spl_episodes_per_s",
        "full_episodes_per_s",
        "dtw_1000_ms",
        "dtw_vs_fastdtw",
        "dtw_vs_dtaidistance",
        "geodesic_error_pct",
        "score_us_per_log_200",
        "score_us_per_log_2000",
        "score_cost_ratio",
        "score_kb_per_log",
    }
    assert all(row["value"] > 0 for name, row in rows.items() if name != "score_kb_per_log")
    assert rows["geodesic_error_pct"]["value"] < 0.001


def test_without_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "DTW_NODES", 10)
    monkeypatch.setattr(metrics, "_fastdtw", lambda: None)
    row = next(row for row in metrics.dtw_rows(1, 0) if row.id == "dtw_vs_fastdtw")
    assert row.value is None
    assert "pip install" in row.note


def test_same_seed_same_trajectories() -> None:
    first, again, other = (metrics.trajectories(2, seed) for seed in (0, 0, 1))
    assert (first[1].path == again[1].path).all()
    assert (first[1].path != other[1].path).any()
