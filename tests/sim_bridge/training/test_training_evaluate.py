"""Agents side by side on the same episodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from robot_runtime.scenes.scene import Scene
from sim_bridge.training.evaluate import evaluate


@pytest.mark.slow
@pytest.mark.exhaustive
def test_two_processes_find_what_one_does_and_do_nothing_twice(
    room: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(out: Path, workers: int) -> str:
        agents = ["forward-only", "random"]
        evaluate(out, agents, [room.folder], count=2, apartments=0, workers=workers)
        return capsys.readouterr().out

    one = printed(tmp_path / "one", 1)
    assert [line.split()[2] for line in one.splitlines()] == ["forward-only", "random"]
    assert printed(tmp_path / "two", 2) == one
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "two").rglob("*.json")}
    assert len(files) == 2
    assert printed(tmp_path / "two", 2) == one
    assert {file: file.stat().st_mtime_ns for file in files} == files
