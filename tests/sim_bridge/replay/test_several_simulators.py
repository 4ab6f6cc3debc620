"""A log in several simulators and the recording, side by side, from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from habitat_double import World, habitat_sim
from scripted import TASK, F, L, record

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.episode import Episode, Goal
from sim_bridge.replay.options import world_name

SEEING = replace(TASK, sensors=(*TASK.sensors, "pointgoal", "gps"), max_steps=20)
START = SE2(1.0, 1.2, 0.0)
"""A place that is free in the apartment and in the flat that the double shows."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps in the bundled apartment."""
    apartment = load_scene(find_scene("apartment"))
    episode = Episode("0", apartment.name, START, (Goal(0.8, 1.4),))
    (made,) = record(
        tmp_path_factory.mktemp("run") / "robot", apartment, [[F, L]], starts=[START], episode=episode, task=SEEING
    )
    return made


@pytest.fixture
def run(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Replays it: exit code, and everything that was said, in one line."""

    def run_it(*arguments: str) -> tuple[int, str]:
        code = run_command(["replay", str(log), *arguments, "--out", str(tmp_path / "out")])
        said = capsys.readouterr()
        return code, " ".join((said.out + said.err).split())

    return run_it


@pytest.mark.slow
def test_two_simulators_and_the_recording_are_three_columns(
    run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "habitat_sim", habitat_sim(World(), "0.2.2"))
    rows = tmp_path / "rows.json"
    policy = ("--agent", "forward-only", "--json", str(rows))
    code, said = run("--into", "sim", "--into", "habitat", "--twin-arg", "habitat.allow_sliding=true", *policy)
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "move_forward instead of turn_left" in page
    assert f'href="sim/{log.stem}.html"' in page
    assert (tmp_path / "out" / "sim" / f"{log.stem}.html").is_file()
    assert code == 0
    for expected in ("habitat-sim", "recorded", f"{log.parent.name}/{log.stem}", "SSIM, mean", "action 1"):
        assert expected in said, expected
    found = {row["into"]: row for row in json.loads(rows.read_text())["replays"]}
    assert {into: row["twin"] for into, row in found.items()} == {"sim": "sim", "habitat": "habitat-sim 0.2.2"}
    for row in found.values():
        assert row["recorded"]["steps"] == 3
        parting = row["replayed"]["parting"]
        assert (parting["index"], parting["detail"]) == (2, "move_forward instead of turn_left")
        assert (tmp_path / "out" / row["into"] / f"{log.stem}.json").is_file()


def test_a_simulator_that_is_not_installed_leaves_its_column_empty_and_says_so(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "habitat_sim", None)
    code, said = run("--into", "sim", "--into", "habitat", "--actions")
    assert code == 0
    assert "its actions not run" in said
    assert "no parting 1" in said
    assert "habitat: 1 log: --into habitat: cannot import habitat_sim" in said
    assert "cannot import habitat_sim" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_option_is_of_its_simulator_whose_actions_part_by_themselves(run) -> None:
    noise = "sim.action_noise={model: robothor, multiplier: 3.0}"
    arguments = ("--actions", "--within-m", "0.001", "--no-pages", "--twin-arg", noise)
    code, said = run("--into", "sim", "--into", "recorded", *arguments)
    assert code == 0
    assert "first parted by position 1 no parting 1" in said
    assert "step 1: position" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--into", "sim", "--into", "sim"], "names a simulator twice"),
        (["--into", "sim", "--into", "habitat", "--twin-arg", "scene=lab.glb"], "--twin-arg scene=lab.glb"),
        (["--into", "sim", "--into", "nobody"], "nobody"),
    ],
)
def test_what_is_not_said_clearly_is_refused(run, arguments: list[str], says: str) -> None:
    code, said = run(*arguments)
    assert code == 2
    assert says in said


def test_a_file_is_named_without_its_folder_and_suffix() -> None:
    assert [world_name(into) for into in ("sim", "fitted/robot.yaml", "habitat")] == ["sim", "robot", "habitat"]
