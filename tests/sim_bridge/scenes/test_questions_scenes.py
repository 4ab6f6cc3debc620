"""Questions about the bundled apartment and generated flats, from the command line too."""

from __future__ import annotations

import functools
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from raising import raises_naming
from typer.testing import CliRunner

from robot_runtime.datasets.files import load_episodes
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from robot_runtime.task_kinds.eqa.cli import register
from robot_runtime.task_kinds.eqa.kind import Inquiry
from robot_runtime.task_kinds.eqa.questions.dataset import read_questions
from robot_runtime.task_kinds.eqa.questions.episodes import question_episodes
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.rules import FEW_SCENES, NINE_TEMPLATES, PAPER
from sim_bridge.scenes.generate import flats

SEEDS = (31, 32, 33, 34, 35)


@functools.cache
def apartment() -> Scene:
    return load_scene(find_scene("apartment"))


@functools.cache
def corpus() -> tuple[Scene, ...]:
    """Five generated flats (without view points, which take long to compute) and the apartment."""
    with tempfile.TemporaryDirectory() as scratch:
        made = []
        for seed in SEEDS:
            folder = Path(scratch) / f"flat_{seed}"
            next(flats(seed, "robothor")).write(folder)
            made.append(load_scene(folder))
    return (*made, apartment())


@pytest.fixture
def command() -> typer.Typer:
    """The command in an application of its own."""
    group = typer.Typer()
    group.callback()(lambda: None)
    register({"episodes": group})
    return group


def test_the_apartment_gives_questions_of_every_template():
    result = generate_questions([apartment()], FEW_SCENES)
    assert {question.type for question in result.questions} >= set(NINE_TEMPLATES)
    answers = {question.answer for question in result.questions if question.type == "existence"}
    assert answers == {"yes", "no"}
    for question in result.questions:
        assert re.fullmatch(r"(What|Is|Are|How many) [a-z ]+\?", question.text), question.text
        assert " a a" not in question.text
        assert not re.search(r"\ban? [a-z]*s (in|and)\b", question.text.replace("drawers", "")), question.text


def test_answers_are_what_the_scene_file_says():
    scene = apartment()
    rooms = {room.id: room.category.replace("_", " ") for room in scene.rooms}
    for question in generate_questions([scene], FEW_SCENES).questions:
        if question.type in ("color", "color_room"):
            assert question.answer == scene.object(question.targets[0]).color
        elif question.type == "location":
            assert question.answer == rooms[scene.object(question.targets[0]).room or ""]
        elif question.type == "count":
            assert question.answer == str(len(question.objects))
        for target in question.targets:
            assert scene.view_points[target]


@pytest.mark.slow
def test_a_corpus_keeps_what_the_papers_rules_keep():
    result = generate_questions(corpus(), PAPER)
    tallies = result.tallies
    assert sum(tally.kept for tally in tallies.values()) == len(result.questions) > 0
    assert tallies["color"].kept > 0
    assert tallies["existence"].kept > 0
    assert sum(tally.too_rare for tally in tallies.values()) > 0
    assert sum(tally.too_predictable for tally in tallies.values()) > 0
    assert not any(question.text == "What room is the toilet located in?" for question in result.questions)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_questions():
    rules = replace(FEW_SCENES, seen_only=False)
    questions = generate_questions(corpus(), rules, 4)
    assert questions == generate_questions(corpus()[::-1], rules, 4)
    assert questions != generate_questions(corpus(), rules, 5)


@pytest.mark.slow
def test_episodes_start_in_the_apartment_before_their_target():
    scene = apartment()
    result = generate_questions([scene], replace(FEW_SCENES, templates=("preposition",)))
    made = question_episodes(replace(result, questions=result.questions[:4]), [scene])
    assert made.episodes
    lengths = {"T-10": [], "T-30": [], "T-50": []}
    for episode in made.episodes:
        lengths[episode.info["info"]["start"]].append(episode.shortest_path_m)
    assert max(lengths["T-10"]) <= 10 * 0.25 + 0.2
    assert sum(lengths["T-10"]) / len(lengths["T-10"]) < sum(lengths["T-30"]) / len(lengths["T-30"])


def test_the_command_writes_questions(tmp_path: Path, command: typer.Typer):
    out = tmp_path / "questions.json.gz"
    result = CliRunner().invoke(command, ["questions", "apartment", "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    written = read_questions(out)
    assert written == generate_questions([apartment()])
    assert f"{len(written.questions)} questions" in result.output


@pytest.mark.slow
def test_the_command_writes_episodes_that_load(tmp_path: Path, command: typer.Typer):
    out, episodes = tmp_path / "questions.json", tmp_path / "eqa.json.gz"
    arguments = [
        "questions",
        "apartment",
        "--out",
        str(out),
        "--episodes-out",
        str(episodes),
        "--templates",
        "preposition",
    ]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    loaded = load_episodes(episodes)
    asked = {question.text for question in read_questions(out).questions}
    assert {Inquiry.of(episode).question.text for episode in loaded if Inquiry.of(episode).question} <= asked
    assert f"{len(loaded)} episodes" in result.output


@pytest.mark.slow
def test_the_command_says_why_there_are_no_questions(tmp_path: Path, command: typer.Typer):
    arguments = ["questions", "apartment", "--out", str(tmp_path / "q.json")]
    with raises_naming(ConfigError, "4 scenes", "1"):
        CliRunner().invoke(command, [*arguments, "--rules", "paper"], catch_exceptions=False)
    with raises_naming(EpisodeError):
        CliRunner().invoke(command, [*arguments, "--min-entropy", "0.5"], catch_exceptions=False)
    assert not (tmp_path / "q.json").exists()
