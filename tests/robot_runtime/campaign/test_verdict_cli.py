"""``score --with-simulation`` and ``campaign forecast`` from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.recording.writer import Recorder

PLAN = """
name: small
task: pointnav_quick
scenes: {"*": apartment}
episodes: starts.json
policies: {one: {spec: oracle}, two: {spec: classical}}
robots: [{robot: fake}]
order: {seed: 1}
test: {largest: 30, metric: success, alpha: 0.1, sided: one}
battery: {least: 0.2, resume: 0.9}
"""
GOOD, BAD = [FORWARD] * 12 + [STOP], [LEFT, STOP]


def record(folder: Path, outcomes: list[bool], agent: str = "one") -> str:
    recorder = Recorder(folder)
    for number, good in enumerate(outcomes):
        start = synthetic.header()
        header = replace(start, agent=agent, episode=replace(start.episode, id=str(number)))
        synthetic.play(recorder, header, synthetic.drive(header, GOOD if good else BAD))
    return str(folder)


def test_score_with_simulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real = record(tmp_path / "real", [True, False, True])
    simulated = record(tmp_path / "sim", [True, False, True, True, True, False])
    file = tmp_path / "twins.json"
    assert run_command(["score", real, "--with-simulation", simulated, "--simulation-json", str(file)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 real episodes, 3 of them simulated, 1 further simulated per real one" in shown
    assert json.loads(file.read_text())["estimates"][0]["metrics"].keys() == {"success", "spl", "soft_spl"}
    assert run_command(["score", real, "--planned-episodes", "9"]) == 2


def test_forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = record(tmp_path / "a", [True, False, False]), record(tmp_path / "b", [True, True, False], "two")
    file = tmp_path / "forecast.json"
    options = ["--difference", "0.3", "--max-pairs", "50", "--judging-s", "20", "--json", str(file)]
    assert run_command(["campaign", "forecast", a, b, *options]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "robot-hours" in shown
    assert "fewer than 200 pilot pairs" in shown
    written = json.loads(file.read_text())
    assert len(written["pilot"]) == 3
    assert written["forecasts"][0]["power"] > 0.5
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    assert run_command(["campaign", "forecast", a, b, "--plan", str(plan), "--json", str(file)]) == 0
    written = json.loads(file.read_text())
    assert (written["metric"], written["alpha"], written["sides"]) == ("success", 0.1, "one")
    assert written["max_pairs"] == 30
    assert written["times"]["usable"] == pytest.approx(0.7)
    assert run_command(["campaign", "forecast", a, b, "--metric", "ndtw"]) == 8
    assert run_command(["campaign", "forecast", a, b, "--metric", "steps"]) == 2
