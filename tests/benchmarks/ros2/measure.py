"""The rows of ``bench ros2``, in .venv-ros2: ``python -m tests.benchmarks.ros2.measure COUNTS FILE`` writes JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.report import Row
from tests.benchmarks.ros2.camera import camera_rows
from tests.benchmarks.ros2.dead_base import dead_base_rows
from tests.benchmarks.ros2.motion import motion_rows
from tests.benchmarks.ros2.stops import stop_rows
from tests.ros2 import ros2_network


def measure(folder: Path, counts: dict[str, int]) -> Iterator[Row]:
    """The rows; a group whose first count is 0 is left out."""
    if counts["contacts"]:
        yield from stop_rows(folder, counts["contacts"], counts["trials"])
    with ros2_network.domain(os.getpid() * 3) as domain:
        if counts["deaths"]:
            yield from dead_base_rows(domain, counts["deaths"], counts["starts"], counts["simulated_starts"])
        if counts["pairs"]:
            yield from camera_rows(domain, folder, counts["pairs"])
    if counts["actions"]:
        yield from motion_rows(folder, counts["actions"])


def main() -> None:
    """Measure, and write; rows are printed as they come, on standard error."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(ros2_network.environment(Path(folder)))
        for row in measure(Path(folder), json.loads(sys.argv[1])):
            print(f"{row.id}: {row.value:.3g} {row.unit}", file=sys.stderr, flush=True)
            rows.append(asdict(row))
    Path(sys.argv[2]).write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
