"""Questions as episodes: where they start, what they aim at."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from question_flat import flat
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.datasets.files import load_episodes
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.eqa import format_mp3d as mp3d_eqa
from robot_runtime.task_kinds.eqa.kind import Inquiry
from robot_runtime.task_kinds.eqa.questions.dataset import QuestionSet
from robot_runtime.task_kinds.eqa.questions.episodes import (
    EQA_MAGNITUDES,
    LOCOBOT_RADIUS_M,
    QuestionEpisodes,
    question_episodes,
)
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.rules import FEW_SCENES
from robot_runtime.task_kinds.eqa.questions.starts import ARRIVE_M, PathFinder
from robot_runtime.tasks.categories import object_goal

pytestmark = pytest.mark.slow  # what they share takes far longer than each test

RULES = replace(FEW_SCENES, templates=("color", "existence"))


@pytest.fixture(scope="module")
def questions() -> QuestionSet:
    return generate_questions([flat()], RULES)


@pytest.fixture(scope="module")
def made(questions: QuestionSet) -> QuestionEpisodes:
    return question_episodes(questions, [flat()])


def test_a_path_is_made_of_actions_and_ends_facing_the_target():
    scene = flat()
    item = scene.object("refrigerator_1")
    goal = object_goal(scene, item)
    path = PathFinder(scene, EQA_MAGNITUDES, LOCOBOT_RADIUS_M, seed=0).path([goal], 50)
    assert path is not None
    pose = path.start
    clearance_m = scene.map.clearance_m()
    for step in path.steps:
        move = EQA_MAGNITUDES.displacement(step.action)
        pose = pose @ SE2(move.forward_m, 0.0, move.turn_rad)
        assert pose.distance_to(step.pose) < 1e-6
        assert abs(wrap_angle(pose.yaw_rad - step.pose.yaw_rad)) < 1e-6
        assert clearance_m[scene.map.to_cell(pose.x_m, pose.y_m)] >= LOCOBOT_RADIUS_M - scene.map.resolution_m
    assert min(pose.distance_to(view) for view in goal.view_points) <= 2 * ARRIVE_M
    facing = math.atan2(goal.y_m - pose.y_m, goal.x_m - pose.x_m)
    assert abs(wrap_angle(facing - pose.yaw_rad)) <= math.radians(EQA_MAGNITUDES.turn_deg / 2) + 1e-6
    assert {step.action for step in path.steps} <= {Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT}


def test_a_start_is_that_many_actions_before_the_end():
    scene = flat()
    path = PathFinder(scene, EQA_MAGNITUDES, LOCOBOT_RADIUS_M, seed=0).path(
        [object_goal(scene, scene.object("sofa_1"))], 30
    )
    assert path is not None
    count = len(path.steps)
    assert path.before_end(count) == path.start
    assert path.before_end(count + 1) is None
    start = path.before_end(10)
    assert start is not None
    for step in path.steps[-10:]:
        move = EQA_MAGNITUDES.displacement(step.action)
        start = start @ SE2(move.forward_m, 0.0, move.turn_rad)
    assert start.distance_to(path.steps[-1].pose) < 1e-6


def test_episodes_carry_question_goal_and_start(made: QuestionEpisodes, questions: QuestionSet):
    scene = flat()
    asked = {question.key: question for question in questions.questions}
    assert made.episodes
    for episode in made.episodes:
        info = episode.info["info"]
        question = asked[info["question"]]
        assert Inquiry.of(episode).question is not None
        assert (Inquiry.of(episode).question.text, Inquiry.of(episode).question.answer) == (
            question.text,
            question.answer,
        )
        assert questions.answers[Inquiry.of(episode).question.answer_token] == question.answer
        assert tuple(goal.object_id for goal in episode.goals) == question.targets
        assert all(goal.view_points == scene.view_points[goal.object_id] for goal in episode.goals)
        assert episode.shortest_path_m <= 0.25 * info["actions_to_target"] + 2 * ARRIVE_M
        assert info["start"] == f"T-{info['actions_to_target']}"
        assert scene.map.navigable(LOCOBOT_RADIUS_M - 0.025)[scene.map.to_cell(episode.start.x_m, episode.start.y_m)]
    assert len({episode.id for episode in made.episodes}) == len(made.episodes)
    assert {episode.info["info"]["actions_to_target"] for episode in made.episodes} >= {10, 30}


def test_every_question_and_start_gives_an_episode_or_a_reason(made: QuestionEpisodes, questions: QuestionSet):
    without = [question for question in questions.questions if not question.targets]
    reasons = made.reasons()
    assert reasons["it has no single object to go to"] == len(without) > 0
    short = sum(count for reason, count in reasons.items() if "fewer than" in reason)
    assert len(made.episodes) + short == 3 * (len(questions.questions) - len(without))


@pytest.mark.slow
def test_starts_depend_on_the_seed_alone(questions: QuestionSet, made: QuestionEpisodes):
    few = replace(questions, questions=questions.questions[:2])
    first, again, other = (question_episodes(few, [flat()], seed) for seed in (0, 0, 1))
    assert first == again
    assert [episode.start for episode in first.episodes] != [episode.start for episode in other.episodes]
    assert {episode.start for episode in first.episodes} <= {episode.start for episode in made.episodes}


def test_episodes_are_written_as_mp3d_eqa_and_read_back(tmp_path: Path, made: QuestionEpisodes, questions: QuestionSet):
    mp3d_eqa.save(tmp_path / "eqa.json.gz", made.episodes)
    back = load_episodes(tmp_path / "eqa.json.gz")
    assert [Inquiry.of(episode).question for episode in back] == [
        Inquiry.of(episode).question for episode in made.episodes
    ]
    assert [episode.info["info"]["start"] for episode in back] == [e.info["info"]["start"] for e in made.episodes]
    assert back[0].info["dataset"]["answer_vocab"]["word_list"] == list(questions.answers)
    for ours, theirs in zip(made.episodes, back, strict=True):
        assert theirs.start.distance_to(ours.start) < 1e-9


def test_targets_that_nobody_can_see_or_reach_are_skipped_with_a_reason():
    scene = flat()
    questions = generate_questions([scene], replace(RULES, templates=("color",)))
    blind = replace(scene, view_points={})
    assert question_episodes(questions, [blind]).reasons() == {"its targets have no view points": 6}
    walled = {name: (SE2(4.5, 4.5),) for name in scene.view_points}  # within the refrigerator
    assert question_episodes(questions, [replace(scene, view_points=walled)]).reasons() == {
        "no path of actions leads to its targets": 6
    }


def test_other_scenes_than_those_asked_about_are_refused(questions: QuestionSet):
    with raises_naming(EpisodeError, "'question_flat'"):
        question_episodes(questions, [flat("another")])
    with raises_naming(EpisodeError, "questions"):
        question_episodes(questions, [replace(flat(), digest="changed")])
