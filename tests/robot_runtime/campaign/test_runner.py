"""Whole campaigns of the fake robot, as commands in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_campaign import write_plan

from robot_runtime.campaign.ledger import Ledger, read_ledger
from robot_runtime.campaign.outcomes import values
from robot_runtime.campaign.state import State, stored_plan
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.errors import ConfigError
from robot_runtime.recording.log_files import LEDGER_FILE

pytestmark = pytest.mark.slow  # each starts the processes of a campaign and of its robot


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "robot_runtime", "campaign", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=120)[0]


def wait_for_lines(folder: Path, kind: str, count: int) -> None:
    path = folder / "campaigns" / "small" / LEDGER_FILE

    def there() -> bool | None:
        found = path.is_file() and path.read_bytes().count(f'"kind":"{kind}"'.encode()) >= count
        return True if found else None

    assert wait_for(SystemClock(), there, 60.0, 0.02)


def state_of(folder: Path) -> State:
    entries = read_ledger(folder / "campaigns" / "small")
    return State(stored_plan(entries), entries)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_plan(tmp_path, 12, limits={"tries": 9})
    return tmp_path


@pytest.fixture
def started(folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
            finish(process)


def test_a_campaign_whose_processes_are_killed_scores_as_one_that_was_left_alone(
    folder: Path, started: list[subprocess.Popen[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("undisturbed")
    write_plan(other, 12, limits={"tries": 9})
    started += [start(other, "run", "plan.yaml"), start(folder, "run", "plan.yaml")]

    wait_for_lines(folder, "ended", 1)
    wait_for_lines(folder, "begun", 2)
    os.kill(child_of(started[1].pid), signal.SIGKILL)
    wait_for_lines(folder, "begun", 4)
    with pytest.raises(ConfigError, match="another process runs this campaign"):
        Ledger(folder / "campaigns" / "small")
    started[1].send_signal(signal.SIGKILL)
    finish(started[1])

    started.append(start(folder, "run", "plan.yaml"))
    wait_for_lines(folder, "session", 2)
    started[2].send_signal(signal.SIGTERM)
    finish(started[2])
    assert started[2].returncode == 130
    assert state_of(folder).unfinished == []

    assert "everything has been run" in finish(start(folder, "run", "plan.yaml"))
    assert "everything has been run" in finish(started[0])
    assert values(state_of(folder), "lenient") == values(state_of(other), "lenient")
    entries = read_ledger(folder / "campaigns" / "small")
    begun = [entry["attempt"] for entry in entries if entry.kind == "begun"]
    assert sorted(begun) == sorted(entry["attempt"] for entry in entries if entry.kind == "ended")
    assert len(begun) == len(set(begun))
    assert len(begun) > len(state_of(other).attempts)


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
