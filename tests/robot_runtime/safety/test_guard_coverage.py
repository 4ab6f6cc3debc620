"""The tests of the Guard and its calling protocol run every line and every branch of both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_every_line_and_branch_of_the_guard_is_tested(tmp_path: Path) -> None:
    """In a process of its own: it measures these two files alone, from the import of the module on."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/robot_runtime/safety/test_guard.py",
        "tests/robot_runtime/safety/test_guarded_base.py",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--cov=robot_runtime.safety", "--cov-branch", "--cov-report=term-missing", "--cov-fail-under=100"]
    environment = {**os.environ, "COVERAGE_FILE": str(tmp_path / "coverage")}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]  # of the run that this one is part of
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("guard", "guarded_wheels", "guarded_base"):
        assert f"robot_runtime/safety/{name}.py" in done.stdout
