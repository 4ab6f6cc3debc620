"""``robot-runtime score`` and ``compare`` from the command line: output, files and exit codes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeEnd

GOOD = [FORWARD] * 12 + [STOP]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Folders ``one`` and ``two`` with the logs of two agents on two episodes; ``two`` has a third, interrupted."""
    start = synthetic.header()
    other = replace(start.episode, id="8", goals=(replace(start.episode.goals[0], y_m=2.0),))
    for agent, ways in (("one", (GOOD, GOOD)), ("two", (GOOD, [LEFT, STOP]))):
        recorder = Recorder(tmp_path / agent)
        for episode, actions in zip((start.episode, other), ways, strict=True):
            header = replace(start, agent=agent, episode=episode)
            synthetic.play(recorder, header, synthetic.drive(header, actions))
    header = replace(start, agent="two", episode=replace(start.episode, id="9"))
    synthetic.play(recorder, header, synthetic.drive(header, [LEFT]), EpisodeEnd(EndReason.INTERRUPTED, 1, 9, "Ctrl-C"))
    return tmp_path


def test_score_prints_a_block_per_agent_and_writes_both_files(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="the extra [parquet] is not installed")
    files = ["--json", str(runs / "s.json"), "--parquet", str(runs / "s.parquet")]
    assert run_command(["score", str(runs / "one"), str(runs / "two"), *files]) == 0
    shown = capsys.readouterr().out
    assert "pointnav_test · one · two rooms · 2 episodes" in [line.rstrip() for line in shown.splitlines()]
    assert "2 episodes (+1 not scored)" in shown
    assert "not scored: 1 of 5 logs" in shown
    assert "episode '9': interrupted: Ctrl-C" in " ".join(shown.split())
    assert len(json.loads((runs / "s.json").read_text())["episodes"]) == 5
    assert (runs / "s.parquet").stat().st_size > 0


def test_count_faults_counts_a_policys_faults_in_every_command(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = replace(synthetic.header(), agent="three")
    end = EpisodeEnd(EndReason.FAULT, 1, 9, "gave no answer within 30 s", of_policy=True)
    synthetic.play(Recorder(tmp_path / "three"), header, synthetic.drive(header, [LEFT]), end)
    three = str(tmp_path / "three")
    assert run_command(["score", three]) == 1
    assert run_command(["score", three, "--count-faults"]) == 0
    assert run_command(["report", three, "--out", str(tmp_path / "page.html"), "--count-faults"]) == 0
    capsys.readouterr()
    assert run_command(["compare", three, str(runs / "one"), "--count-faults"]) == 0
    assert "not scored" not in capsys.readouterr().out


def test_score_of_nothing_that_can_be_scored_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.mcap").write_text("no log")
    assert run_command(["score", str(tmp_path)]) == 1
    assert "is not a log" in " ".join(capsys.readouterr().out.split())


def test_score_needs_logs_or_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["score"]) == 2
    assert "--cases" in capsys.readouterr().err


def test_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = {
        "id": "straight",
        "metric": "path_length",
        "inputs": {"Q": [[0, 0], [3, 4]]},
        "expected": 5.0,
        "tol": 1e-9,
        "by_hand": "3-4-5",
    }
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [case]}))
    code = run_command(["score", "--cases", str(file)])
    assert (code, "1 of 1 cases pass" in capsys.readouterr().out) == (0, True)
    file.write_text(json.dumps({"cases": [{**case, "expected": 6.0}]}))
    assert run_command(["score", "--cases", str(file)]) == 1
    assert "0 of 1 cases pass" in capsys.readouterr().out


def test_compare(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", str(runs / "one"), str(runs / "two"), "--json", str(runs / "c.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "pointnav_test · 2 episodes run by both" in shown
    assert "A one, B two" in shown
    assert "success: no significant difference between A and B (p = 1.0000); at least" in shown
    assert "episode '9': not scored: interrupted: Ctrl-C" in shown
    assert json.loads((runs / "c.json").read_text())["groups"][0]["episodes"] == 2


def test_compare_without_overlap(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (sorted((runs / agent).glob("*.mcap"))[index] for agent, index in (("one", 0), ("two", 1)))
    assert run_command(["compare", str(one), str(two)]) == 8
    shown = capsys.readouterr().err
    assert "A and B have no episode in common" in shown
    assert "remedy: run both policies on the same episode file" in shown


@pytest.mark.parametrize("command", [["score"], ["report", "--out", "page.html"]])
def test_what_smoothing_lacks_is_told_once_with_the_remedy(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gtsam", None)
    assert run_command([*command, str(runs), "--referee", "smoothed"]) == 2
    assert "pip install 'robot-runtime[smoother]'" in capsys.readouterr().err
