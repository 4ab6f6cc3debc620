"""Tables of steps have the log's values, and the same in both formats."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from pyarrow import parquet
from recorded_drive import recorded_drive

from robot_runtime.cli.main import run_command
from robot_runtime.export.steps import COLUMNS
from robot_runtime.recording.reader import LogReader


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_drive(tmp_path_factory.mktemp("log"))


def test_a_row_per_step_has_the_logs_values(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "steps.parquet"
    assert run_command(["export", "steps", str(log), "--out", str(out)]) == 0
    table = parquet.read_table(out)
    assert table.column_names == list(COLUMNS)
    rows = table.to_pylist()
    with LogReader(log) as reader:
        records = list(reader.steps(images=False))
    assert [row["action"] for row in rows] == [None, "move_forward", "turn_left", "look_up", "stop"]
    for row, record in zip(rows, records, strict=True):
        assert (row["referee_x_m"], row["referee_yaw_rad"]) == (record.referee.pose.x_m, record.referee.pose.yaw_rad)
        assert row["step"] == record.index
        assert row["tilt_rad"] == record.head.tilt_rad
    assert rows[1]["outcome"] == "reached"
    assert rows[1]["measured_forward_m"] == pytest.approx(0.25)
    assert rows[0]["outcome"] is None
    assert math.isclose(rows[2]["commanded_turn_rad"], math.radians(30))


def test_csv_has_the_same_rows(log: Path, tmp_path: Path) -> None:
    for name in ("steps.csv", "steps.parquet"):
        assert run_command(["export", "steps", str(log.parent), "--out", str(tmp_path / name)]) == 0
    with (tmp_path / "steps.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    expected = parquet.read_table(tmp_path / "steps.parquet").to_pylist()
    assert [{name: "" if v is None else str(v) for name, v in row.items()} for row in expected] == found


def test_a_name_that_is_no_table_is_refused(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["export", "steps", str(log), "--out", str(tmp_path / "steps.xlsx")]) == 2
    assert ".csv or .parquet" in capsys.readouterr().err
