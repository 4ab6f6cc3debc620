"""Runs that go on after their process was killed, each episode with one log that counts."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from small_campaign import write_light_task

from robot_runtime.campaign.ledger import Ledger
from robot_runtime.campaign.single_run import RunLedger
from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording.log_files import LEDGER_FILE
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason
from tests.benchmarks.runtime.simulated_campaigns import in_child

AGENT = """
import os, signal
class Kills:
    episodes = steps = 0
    def __init__(self, marker): self.marker = marker
    def reset(self):
        self.episodes, self.steps = self.episodes + 1, 0
    def act(self, observations):
        self.steps += 1
        if self.episodes == 2 and self.steps == 3 and not os.path.exists(self.marker):
            open(self.marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return "STOP" if self.steps == 4 else "TURN_LEFT"
"""


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_the_episodes_that_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agents.py").write_text(AGENT, encoding="utf-8")
    out = tmp_path / "logs"
    command = ["run", "--robot", "fake", "--scene", "arena", "--count", "3", "--out", str(out)]
    command += ["--agent", f"{tmp_path}/agents.py:Kills", "--agent-arg", f"marker={tmp_path}/killed"]
    command += ["--task", str(write_light_task(tmp_path))]

    child = os.fork()
    if child == 0:
        in_child(lambda: run_command(command))
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    first = next(out.glob("0000_*.mcap")).read_bytes()
    assert run_command(command) != 0
    assert "--resume" in capsys.readouterr().err
    assert run_command([*command, "--resume", "--seed", "1"]) != 0
    assert "other settings: episodes, seed" in " ".join(capsys.readouterr().err.split())

    assert run_command([*command, "--resume"]) == 0
    logs = {path.name: path.read_bytes() for path in out.glob("*.mcap")}
    assert logs[min(logs)] == first
    seeds = []
    for name in sorted(logs):
        with LogReader(out / name) as log:
            assert log.end is not None
            assert log.end.reason is EndReason.STOP
            seeds.append(log.header.seed)
    assert seeds == [0, 1, 2]
    (aborted,) = out.glob("0001_*.aborted-*")

    assert run_command([*command, "--resume"]) == 0
    assert {path.name: path.read_bytes() for path in out.glob("*.mcap")} == logs
    assert [path.name for path in out.glob("*.aborted-*")] == [aborted.name]


@pytest.mark.slow
def test_a_log_that_is_torn_or_gone_does_not_count_and_one_of_another_run_is_refused(tmp_path: Path) -> None:
    def opened() -> RunLedger:
        return RunLedger(tmp_path, {"seed": 0}, ["a", "b"], lambda _: None)

    with opened() as run:
        assert run.left == [0, 1]
        assert not (tmp_path / LEDGER_FILE).exists()
        with run.episode(0):
            (tmp_path / "0000_a.mcap").write_bytes(b"torn")
        with pytest.raises(KeyboardInterrupt), run.episode(1):  # before the log was begun
            raise KeyboardInterrupt
        with pytest.raises(ConfigError, match="another process"):
            opened()
    with opened() as run:
        assert run.left == [0, 1]
        assert [path.read_bytes() for path in tmp_path.glob("0000_a.aborted-*")] == [b"torn"]
        with run.episode(0):
            (tmp_path / "0000_a.mcap").write_bytes(b"torn again")
    with opened() as run:
        assert len(list(tmp_path.glob("0000_a.aborted-*"))) == 2
    (tmp_path / "0009_x.mcap").write_bytes(b"")
    with pytest.raises(RecordingError, match="0009_x"):
        opened()


def test_a_folder_of_a_campaign_is_no_run(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.append("plan")
    with pytest.raises(ConfigError, match="no single run"):
        RunLedger(tmp_path, {}, [], print)
