"""A base without contact sensing is driven only in a task that accepts it, and logs, scores and reports say so."""

from __future__ import annotations

from pathlib import Path

import contactless_base
import pytest
from said import command_says
from small_campaign import write_light_task

from robot_runtime.recording.reader import LogReader
from robot_runtime.scoring.summary import score_log


def test_the_task_must_accept_it_and_what_is_recorded_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot, task, logs = tmp_path / "blind.yaml", write_light_task(tmp_path), tmp_path / "logs"
    robot.write_text(contactless_base.YAML, encoding="utf-8")
    options = ("--robot", robot, "--scene", "arena", "--task", task)
    run = ("run", *options, "--agent", "random", "--count", "1", "--out", logs)
    preflight = ("preflight", *options, "--policy", "random")
    for command in (run, preflight):
        refused = command_says(capsys, *command)
        assert all(name in refused for name in ("'blind'", "'light'", "needs_contact_sensing: false"))
    assert not list(logs.glob("*.mcap"))

    text = task.read_text(encoding="utf-8")
    assert "needs_contact_sensing: true" in text
    task.write_text(text.replace("needs_contact_sensing: true", "needs_contact_sensing: false"), encoding="utf-8")
    for command in (run, preflight):
        assert "accept it" not in command_says(capsys, *command)
    (log,) = logs.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.header.senses_contact is False
        assert reader.header.task.needs_contact_sensing is False
    assert score_log(log).metrics["collisions"] is None
    assert "blind (contacts not sensed)" in command_says(capsys, "score", log)
    page = tmp_path / "report.html"
    command_says(capsys, "report", log, "--out", page)
    assert "blind (contacts not sensed)" in page.read_text(encoding="utf-8")
