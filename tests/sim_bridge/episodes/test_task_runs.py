"""Every kind of task end to end: from the episodes to the score, on the simulated robot, from the command line."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from robot_runtime.task_kinds.areagoal import kind as areagoal
from robot_runtime.task_kinds.vln import format_r2r_ce as r2r_ce
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import load_task


def run(folder: Path, task: str, episodes: Path, agent: str = "oracle", count: int = 1) -> list[dict[str, Any]]:
    """Run and score episodes, write a report, and return each episode's metrics."""
    out, scores = folder / "logs" / task, folder / f"{task}.json"
    arguments = ["--task", task, "--episodes", str(episodes), "--count", str(count), "--agent", agent]
    assert run_command(["run", "--out", str(out), *arguments]) == 0
    assert run_command(["score", str(out), "--json", str(scores)]) == 0
    assert run_command(["report", str(out), "--out", str(folder / f"{task}.html")]) == 0
    return [episode["metrics"] for episode in json.loads(scores.read_text(encoding="utf-8"))["episodes"]]


def synthetic_instructions(scene: Scene, path: Path) -> None:
    """R2R-CE's schema around shortest paths between rooms. No person wrote them: they test the machinery."""
    task = load_task("vln_rxr_ce")
    space = GeodesicMap(scene.map, task.robot_radius_m)
    rooms = {}
    for room in scene.rooms:
        middle = [sum(axis) / len(room.polygon) for axis in zip(*room.polygon, strict=True)]
        rooms[room.category] = space.snap(middle[0], middle[1], 1.5)
    episodes = []
    for index, (start, end) in enumerate((("bedroom", "living_room"), ("kitchen", "bedroom"))):
        assert rooms[start] is not None
        assert rooms[end] is not None
        field = space.field([rooms[end]])
        route = tuple((float(x), float(y), 0.0) for x, y in field.path(*rooms[start]))
        heading = math.atan2(route[1][1] - route[0][1], route[1][0] - route[0][0])
        text = f"Leave the {start} and stop in the {end}.".replace("_", " ")
        episodes.append(
            Episode(
                id=str(index),
                scene=scene.name,
                start=SE2(*rooms[start], heading),
                goals=(Goal(*rooms[end]),),
                shortest_path_m=field.at(*rooms[start]),
                details=Route(
                    instruction=Instruction(text, tokens=(1, 2, 3), trajectory_id=str(index)), reference_path=route
                ),
            )
        )
    r2r_ce.save(path, episodes)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    files = ["--out", str(folder / "questions.json.gz"), "--episodes-out", str(folder / "eqa.json.gz")]
    assert run_command(["episodes", "questions", "apartment", "--templates", "color", *files]) == 0
    return folder / "eqa.json.gz"


@pytest.mark.slow
@pytest.mark.parametrize("task", ["vln_rxr_ce", pytest.param("vln_r2r_ce", marks=pytest.mark.exhaustive)])
def test_instructions(task: str, tmp_path: Path) -> None:
    synthetic_instructions(load_scene(find_scene("apartment")), tmp_path / "val.json.gz")
    for metrics in run(tmp_path, task, tmp_path / "val.json.gz"):
        assert metrics["success"] is metrics["oracle_success"] is True
        assert metrics["distance_to_goal"] < 0.36
        assert metrics["sdtw"] == metrics["ndtw"] > 0.3
        assert metrics["max_deviation_m"] < 3


@pytest.mark.slow
@pytest.mark.parametrize("task", ["eqa_embodied", pytest.param("eqa_habitat", marks=pytest.mark.exhaustive)])
def test_questions(task: str, questions: Path, tmp_path: Path) -> None:
    for metrics in run(tmp_path, task, questions):
        assert metrics["success"] is metrics["answer_accuracy"] is metrics["r_T"] is metrics["stopped"] is True
        assert metrics["d_T_m"] == pytest.approx(metrics["d_min_m"], abs=1e-6)
        assert metrics["d_T_m"] < 0.2


@pytest.mark.slow
def test_a_question_that_is_not_answered_is_answered_wrongly(questions: Path, tmp_path: Path) -> None:
    (tmp_path / "mute.py").write_text("class Mute:\n    def reset(self): ...\n    def act(self, seen): return 'stop'\n")
    for metrics in run(tmp_path, "eqa_embodied", questions, f"{tmp_path / 'mute.py'}:Mute"):
        assert (metrics["success"], metrics["stopped"]) == (False, True)
        assert metrics["answer_rank"] > 1  # an abstention shares the places of all answers of the dataset


@pytest.mark.slow
@pytest.mark.parametrize("task", ["areagoal_room", pytest.param("areagoal_stop", marks=pytest.mark.exhaustive)])
def test_rooms(task: str, tmp_path: Path) -> None:
    episodes = tmp_path / "rooms.json.gz"
    assert run_command(["episodes", "generate", "--out", str(episodes), "--task", task, "--count", "1"]) == 0
    for metrics in run(tmp_path, task, episodes):
        assert metrics["success"] is metrics["r_T"] is metrics["r_enter"] is metrics["stopped"] is True
        assert metrics["distance_to_goal"] <= areagoal.TARGET_SPACING_M


@pytest.mark.slow
def test_rooms_of_minos_end_at_the_door_or_with_the_time(tmp_path: Path) -> None:
    """A robot that rests between actions does some 90 of them in MINOS's 50 s: some rooms are out of reach."""
    episodes = tmp_path / "rooms.json.gz"
    arguments = ["--task", "areagoal_minos", "--count", "2", "--seed", "3"]
    assert run_command(["episodes", "generate", "--out", str(episodes), *arguments]) == 0
    scores = run(tmp_path, "areagoal_minos", episodes, count=2)
    assert sorted(metrics["success"] for metrics in scores) == [False, True]
    for metrics in scores:
        assert metrics["success"] is metrics["r_T"] is metrics["r_enter"]
        assert metrics["stopped"] is False
        assert metrics["steps"] < 500


@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    [
        "objectnav_hm3d2022",
        pytest.param("objectnav_habitat2020_paper", marks=pytest.mark.exhaustive),
        "objectnav_robothor2020",
    ],
)
def test_objects(task: str, tmp_path: Path) -> None:
    episodes = tmp_path / "objects.json.gz"
    assert run_command(["episodes", "generate", "--out", str(episodes), "--task", task, "--count", "1"]) == 0
    for metrics in run(tmp_path, task, episodes):
        assert metrics["success"] is True
        for name in ("intentionality", "validity", "visibility"):
            assert metrics[f"criterion_{name}"] is True


@pytest.mark.slow
def test_episodes_of_another_kind_are_named(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--episodes", str(questions), "--count", "1", "--agent", "oracle", "--out", str(tmp_path / "logs")]
    assert run_command(["run", "--task", "vln_rxr_ce", *arguments]) != 0
    errors = capsys.readouterr().err
    assert "episode '0': has no instruction" in errors
    assert "R2R-CE" in errors


@pytest.mark.slow
def test_an_episode_that_cannot_be_read_is_told_and_the_others_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synthetic_instructions(load_scene(find_scene("apartment")), tmp_path / "val.json.gz")
    document = json.loads(gzip.decompress((tmp_path / "val.json.gz").read_bytes()))
    document["episodes"][0]["start_position"] = "here"
    (tmp_path / "odd.json").write_text(json.dumps(document), encoding="utf-8")
    arguments = ["run", "--task", "vln_rxr_ce", "--episodes", str(tmp_path / "odd.json"), "--agent", "oracle"]
    assert run_command([*arguments, "--out", str(tmp_path / "none")]) == EpisodeError.exit_code
    assert list(tmp_path.glob("none/*.mcap")) == []
    assert run_command([*arguments, "--keep-going", "--out", str(tmp_path / "logs")]) == EpisodeError.exit_code
    assert len(list(tmp_path.glob("logs/*.mcap"))) == 1
    printed = capsys.readouterr().err
    for expected in ("not run:", "odd.json: episode 0 (id '0'): field 'start_position'"):
        assert expected in printed


@pytest.mark.slow
def test_where_no_episode_runs_the_reason_is_the_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.yaml").write_text(
        "schema: 1\nscene: apartment\nepisodes:\n- id: unknown\n  start: [6.5, 1.0, 90]\n  objects:\n"
        "  - {id: ghost, start: {position: [6.2, 2.9]}, goal: {position: [5.3, 1.1]}}\n",
        encoding="utf-8",
    )
    arguments = ["--episodes", str(tmp_path / "odd.yaml"), "--agent", "oracle", "--keep-going"]
    arguments += ["--out", str(tmp_path / "logs")]
    assert run_command(["run", "--task", "house_cleanup_locobot", *arguments]) == EpisodeError.exit_code
    assert "error: episode 'unknown': scene 'apartment' has no object 'ghost'" in capsys.readouterr().err
