"""Loaders and mutated files: each gives a result or one of the project's errors, in bounded memory and time.

``pytest -m exhaustive tests/test_hostile_files.py`` takes ten thousand other files. A failure names the file, which
stays in pytest's folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_files import GROUPS

ROOT = Path(__file__).resolve().parents[1]
FEW = 500
MANY = 10_000


def complaints(group: str, count: int, seed: int, folder: Path) -> str:
    """Result of loading mutated files in a process of its own whose memory is limited."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests/support'}"}
    command = [sys.executable, "-m", "hostile_files", group, str(count), str(seed), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if not done.returncode:
        return ""
    written = folder / "complaints.txt"
    return written.read_text() if written.exists() else f"status {done.returncode}: {done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_a_mutated_file_ends_in_a_result_or_a_typed_error(group: str, tmp_path: Path) -> None:
    found = complaints(group, FEW // len(GROUPS), 0, tmp_path)
    assert not found, found[-4000:]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(0)
@pytest.mark.parametrize("group", GROUPS)
def test_many_mutated_files_end_in_results_or_typed_errors(group: str, tmp_path: Path) -> None:
    found = complaints(group, MANY // len(GROUPS), 1, tmp_path)
    assert not found, found[-4000:]
