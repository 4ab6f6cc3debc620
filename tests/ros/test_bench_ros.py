"""`bench ros` measures, and says what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.exhaustive
def test_every_row_is_measured(spawn: Any, tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    bench = spawn("-m", "tests.benchmarks", "ros", "--trials", "2", "--cuts", "1", "--json", str(out))
    assert bench.process.wait(240) == 0, bench.output
    bench.stop()
    rows = {row["id"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows.keys() == {
        *("contact_to_zero_p50_ms", "contact_to_zero_p99_ms", "command_loss_to_zero_ms"),
        *("gap_survived_s", "starts_at_2pct_loss"),
        *("rgbd_loss_pct", "rgbd_cpu_pct", "forward_s", "turn_s", "forward_error_mm", "turn_error_deg"),
    }
    assert rows["contact_to_zero_p99_ms"]["value"] > 0
    assert rows["command_loss_to_zero_ms"]["value"] > 150, "a command is valid for 0.2 s"
    for name, most in {"forward_s": 5, "turn_s": 5, "forward_error_mm": 50, "turn_error_deg": 5}.items():
        assert 0 < rows[name]["value"] < most
    assert rows["rgbd_cpu_pct"]["value"] > 0
    # Without root the link's rows are not run.
    assert rows["gap_survived_s"]["value"] in (3.0, None)
    assert rows["starts_at_2pct_loss"]["value"] in (1.0, None)
