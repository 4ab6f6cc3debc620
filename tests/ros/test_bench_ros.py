"""`robot-runtime bench ros` measures, and says what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_every_row_is_measured(spawn: Any, tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    bench = spawn("-m", "robot_runtime", "bench", "ros", "--trials", "2", "--json", str(out))
    assert bench.process.wait(60) == 0, bench.output
    bench.stop()
    rows = {row["id"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows.keys() >= {"contact_to_zero_p50_ms", "contact_to_zero_p99_ms", "command_loss_to_zero_ms"}
    assert rows["contact_to_zero_p99_ms"]["value"] > 0
    assert rows["command_loss_to_zero_ms"]["value"] > 150, "a command is valid for 0.2 s"
