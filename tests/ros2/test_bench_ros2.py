"""`bench ros2` measures, and says what."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ros2_programs import ROOT

from tests.benchmarks.ros2.stops import BASES

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]


def test_every_row_is_measured(tmp_path: Path) -> None:
    counts = {"contacts": 2, "trials": 1, "deaths": 2, "starts": 1, "simulated_starts": 20, "pairs": 20, "actions": 4}
    command = [sys.executable, "-m", "tests.benchmarks.ros2.measure", json.dumps(counts), str(tmp_path / "rows.json")]
    subprocess.run(command, cwd=ROOT, check=True, timeout=280, stdout=subprocess.DEVNULL)
    rows = {row["id"]: row for row in json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))}
    actions = ("forward_s", "turn_s", "forward_error_mm", "turn_error_deg")
    assert rows.keys() == {
        *(f"contact_to_zero_p99_ms.{name}" for name, base in BASES.items() if base.senses_contact),
        *(f"{row}.{name}" for row in ("guard_alone_killed_to_zero_ms", "command_loss_to_zero_ms") for name in BASES),
        *("dead_base_named_s", "dead_base_false", "dead_base_false_simulated"),
        *("rgbd_loss_pct", "rgbd_cpu_pct", "rgbd_loss_stock_pct"),
        *actions,
        *(f"create3_{name}" for name in actions),
    }
    assert 0.5 < rows["dead_base_named_s"]["value"] < 3.0
    for prefix in ("", "create3_"):
        for name, most in {"forward_s": 5, "turn_s": 5, "forward_error_mm": 50, "turn_error_deg": 5}.items():
            assert 0 < rows[prefix + name]["value"] < most
