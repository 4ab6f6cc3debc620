"""Rows of benchmarks as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.benchmarks.report import Row, write_rows


def test_rows_of_numpys_numbers_are_written(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.json", "some", [Row("a", "length", np.float64(0.5), "m", 1.0, "<=")])
    (row,) = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert (row["value"], row["reached"]) == (0.5, True)
