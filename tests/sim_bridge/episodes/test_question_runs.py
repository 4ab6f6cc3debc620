"""From a question to a score and a report in one command each, on the simulated robot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from detector_files import boxes

from robot_runtime.cli.main import run_command
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.files import save_episodes
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import ANSWER, EVIDENCE
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.scoring.summary import score_log
from robot_runtime.task_kinds.eqa.kind import Inquiry, Question
from robot_runtime.tasks.categories import object_goal
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import load_task


@pytest.mark.slow  # loads the simulator and drives
def test_the_memory_agent_answers_with_evidence(tmp_path: Path) -> None:
    out, scores, page = tmp_path / "logs", tmp_path / "scores.json", tmp_path / "report.html"
    arguments = ["--task", "eqa_embodied", "--agent", "eqa-memory", "--count", "1", "--out", str(out)]
    assert run_command(["run", *arguments]) == 0
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.header.task.name == "eqa_embodied+depth+gps+compass+semantic+floor_plan"
        question = Inquiry.of(reader.header.episode).question
        last = list(reader.steps())[-1].policy_info
    assert question is not None
    assert max(last[ANSWER], key=last[ANSWER].get) == question.answer
    assert last[EVIDENCE][0].startswith(f"answers {question.answer!r} with confidence ")
    assert "first seen at step" in last[EVIDENCE][1]
    assert run_command(["score", str(out), "--json", str(scores)]) == 0
    (episode,) = json.loads(scores.read_text(encoding="utf-8"))["episodes"]
    assert episode["metrics"]["answer_accuracy"] is True
    assert run_command(["report", str(out), "--out", str(page)]) == 0
    assert "first seen at step" in page.read_text(encoding="utf-8")


@pytest.mark.slow  # loads the simulator and drives
def test_the_learned_package_navigates_and_answers(tmp_path: Path) -> None:
    out, scores = tmp_path / "logs", tmp_path / "scores.json"
    arguments = ["--task", "eqa_embodied", "--agent", "eqa-navigator", "--count", "1", "--out", str(out)]
    assert run_command(["run", *arguments]) == 0
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.header.task.name == "eqa_embodied"  # color and question alone
        last = list(reader.steps(images=False))[-1].policy_info
    assert sum(last[ANSWER].values()) == pytest.approx(1, abs=1e-3)
    assert run_command(["score", str(out), "--json", str(scores)]) == 0
    (episode,) = json.loads(scores.read_text(encoding="utf-8"))["episodes"]
    assert episode["metrics"]["answer_accuracy"] in (True, False)
    assert episode["metrics"]["d_T_m"] >= 0


@pytest.mark.slow  # loads the simulator and drives
@pytest.mark.parametrize(
    ("robot", "agent"),
    [("locobot-create2", "eqa-navigator"), pytest.param("locobot-kobuki", "eqa-memory", marks=pytest.mark.exhaustive)],
)
def test_the_agents_answer_on_a_base_and_servos_over_bytes(robot: str, agent: str, tmp_path: Path) -> None:
    document = config.read_yaml(config.find_preset("tasks", "eqa_embodied"))
    task, out, scores = tmp_path / "task.yaml", tmp_path / "logs", tmp_path / "scores.json"
    task.write_text(yaml.safe_dump(document | {"max_steps": 16}))  # the memory agent needs 13 for this question
    arguments = ["--task", str(task), "--robot", robot, "--agent", agent, "--count", "1", "--seed", "4"]
    assert run_command(["run", *arguments, "--out", str(out)]) == 0
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.header.robot == robot
        question = Inquiry.of(reader.header.episode).question
        last = list(reader.steps(images=False))[-1].policy_info
    assert question is not None
    right = max(last[ANSWER], key=last[ANSWER].get) == question.answer
    assert right or agent == "eqa-navigator"
    assert run_command(["score", str(out), "--json", str(scores)]) == 0
    (episode,) = json.loads(scores.read_text(encoding="utf-8"))["episodes"]
    assert episode["metrics"]["answer_accuracy"] is right
    assert episode["metrics"]["path_length_m"] > 0


@pytest.mark.slow  # loads the simulator and drives
@pytest.mark.parametrize(
    ("question", "steps", "reason"),
    [
        ("What color is the unicorn?", 1, "no category of the task is called 'unicorn'"),
        ("What color is the fireplace?", 3, "no fireplace was seen"),
        ("What color is the bed in the cellar?", 1, "the floor plan has no room called 'cellar'"),
    ],
)
def test_what_is_not_there_is_no_answer_and_the_log_says_why(
    question: str, steps: int, reason: str, tmp_path: Path
) -> None:
    document = config.read_yaml(config.find_preset("tasks", "eqa_embodied"))
    task, file, out = tmp_path / "task.yaml", tmp_path / "asked.json.gz", tmp_path / "logs"
    task.write_text(yaml.safe_dump(document | {"max_steps": 3}))
    scene = load_scene(find_scene("apartment"))
    goal = object_goal(scene, scene.object(min(scene.view_points)))  # what the question was meant for
    asked = Episode(
        "0",
        scene.name,
        SE2(5.07, 0.82, 0.0),
        goals=(goal,),
        details=Inquiry(question=Question(question, "blue", "color")),
    )
    save_episodes(file, [asked], load_task(str(task)))
    arguments = ["--task", str(task), "--episodes", str(file), "--agent", "eqa-memory", "--out", str(out)]
    assert run_command(["run", *arguments]) == 0
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        last = list(reader.steps(images=False))[-1].policy_info
        assert reader.end is not None
        assert reader.end.steps == steps
    assert last[ANSWER] is None
    assert last[EVIDENCE] == [f"abstains: {reason}"]
    assert score_log(log).metrics["answer_accuracy"] is False


@pytest.mark.slow  # loads the simulator and drives
def test_objectnav_sees_by_a_detector(tmp_path: Path) -> None:
    document = config.read_yaml(config.find_preset("tasks", "objectnav_habitat2020"))
    task, out = tmp_path / "task.yaml", tmp_path / "logs"
    task.write_text(yaml.safe_dump(document | {"max_steps": 3}))
    detector = boxes(tmp_path, [([2, 2, 6, 6], 0.9, 1)], labels=["", "chair"])
    options = ["--task", str(task), "--agent", "classical", "--detector", str(detector)]
    assert run_command(["run", *options, "--count", "1", "--out", str(out)]) == 0
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.header.agent == "classical+detector"
        seen = [record.policy_info["detector"]["labels"] for record in list(reader.steps(images=False))[1:]]
    assert seen
    assert all(labels == ["chair"] for labels in seen)
    assert run_command(["score", str(out)]) == 0
