"""Scores as files: JSON and Parquet say the same, and say everything."""

from __future__ import annotations

import builtins
import json
from pathlib import Path

import pytest
import synthetic
from raising import raises_naming
from synthetic import FORWARD, STOP

from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.metrics.measures import COMMON
from robot_runtime.scoring.report.export import write_json, write_parquet
from robot_runtime.scoring.summary import EpisodeScore, score_logs


@pytest.fixture
def scores(record, tmp_path: Path) -> list[EpisodeScore]:
    sources = {"policy": ("odometry", "beacons"), "referee": ("truth",)}
    header = synthetic.header(dataset="datasets/pointnav/val/val.json.gz", localizers=sources)
    paths = [record(header, [FORWARD] * 12 + [STOP]), record(header, [STOP]), tmp_path / "broken.mcap"]
    paths[2].touch()
    return score_logs(paths)


def test_json_holds_scores_and_every_choice(scores: list[EpisodeScore], tmp_path: Path) -> None:
    write_json(tmp_path / "scores.json", scores)
    document = json.loads((tmp_path / "scores.json").read_text())
    good, failed, broken = document["episodes"]
    assert [episode["scorable"] for episode in (good, failed, broken)] == [True, True, False]
    assert (good["metrics"]["success"], good["split"], good["key"]) == (True, "val", scores[0].key)
    assert (good["robot"], good["localizer"], good["referee"]) == ("synthetic", "odometry and beacons", "truth")
    assert "is not a log" in broken["reason"]
    assert (good["choices"], failed["choices"], broken["choices"]) == (0, 0, None)
    (choices,) = document["choices"]
    assert choices["sampling"].startswith("referee pose")
    assert choices["scorer"] == document["scorer"] == SCORER_VERSION
    assert document["runs"][good["run"]]["commit"] == "1234567"
    (group,) = document["groups"]
    assert (group["split"], group["robot"], group["referee"], group["episodes"]) == ("val", "synthetic", "truth", 2)
    assert group["intervals"]["spl"]["mean"] == pytest.approx(0.5)
    assert group["resamples"] == 10_000


def test_json_of_nothing(tmp_path: Path) -> None:
    write_json(tmp_path / "scores.json", [])
    assert json.loads((tmp_path / "scores.json").read_text())["episodes"] == []


def test_parquet_holds_a_row_per_log(scores: list[EpisodeScore], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra [parquet] is not installed")
    write_parquet(tmp_path / "scores.parquet", scores)
    read = parquet.read_table(tmp_path / "scores.parquet")
    rows = read.to_pylist()
    assert [row["scorable"] for row in rows] == [True, True, False]
    for row, score in zip(rows, scores, strict=True):
        assert row["path"] == str(score.path)
        assert (row["robot"], row["localizer"], row["referee"]) == (score.robot, score.localizer, score.referee)
        assert [row[metric.name] for metric in COMMON] == [score.metrics.get(metric.name) for metric in COMMON]
    about = json.loads(read.schema.metadata[b"robot_runtime"])
    assert about["choices"][rows[0]["choices"]] == scores[0].choices
    assert about["runs"][rows[0]["run"]]["commit"] == "1234567"


def test_parquet_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError("No module named 'pyarrow'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with raises_naming(ConfigError, "pyarrow") as caught:
        write_parquet(tmp_path / "scores.parquet", [])
    assert "robot-runtime[parquet]" in caught.value.remedy


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "no").touch()
    with raises_naming(RecordingError, tmp_path):
        write_json(tmp_path / "no" / "scores.json", [])
    pytest.importorskip("pyarrow", reason="the extra [parquet] is not installed")
    with raises_naming(RecordingError, tmp_path):
        write_parquet(tmp_path / "no" / "scores.parquet", [])
