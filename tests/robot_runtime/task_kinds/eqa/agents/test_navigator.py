"""The learned agent that ships: one recurrent package that navigates and answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.errors import PolicyMismatch
from robot_runtime.policies import load_policy
from robot_runtime.policies.package.policy import PackagePolicy
from robot_runtime.policies.package.vocabulary import Vocabulary
from robot_runtime.tasks.task import load_task

TASK = load_task("eqa_embodied")


@pytest.fixture(scope="module")
def agent() -> PackagePolicy:
    policy = load_policy("eqa-navigator")
    assert isinstance(policy, PackagePolicy)
    return policy


def seen(level: int, question: str = "What room is the toilet located in?") -> dict[str, np.ndarray]:
    return {"rgb": np.full((224, 224, 3), level, np.uint8), "question": np.array(question)}


def test_it_acts_and_answers_with_probabilities(agent: PackagePolicy) -> None:
    agent.reset(TASK, 0)
    assert agent.act(seen(120)) in TASK.actions
    scores = agent.answer(seen(120))
    assert isinstance(scores, dict)
    assert sum(scores.values()) == pytest.approx(1, abs=1e-4)
    assert max(scores, key=lambda word: scores[word]) == "bathroom"


def test_an_episode_begins_with_nothing_remembered(agent: PackagePolicy) -> None:
    answers = []
    for levels in ((90,), (200, 20, 90), (90,)):
        agent.reset(TASK, 0)
        for level in levels:
            agent.act(seen(level))
        answers.append(agent.answer(seen(levels[-1])))
    assert answers[0] == answers[2] != answers[1]


def test_words_that_it_does_not_know_are_left_out(agent: PackagePolicy) -> None:
    agent.reset(TASK, 0)
    agent.act(seen(120, "Qwerty?"))
    assert agent.answer(seen(120)) is not None


def test_another_task_is_refused(agent: PackagePolicy) -> None:
    with raises_naming(PolicyMismatch, "tasks of kind eqa"):
        agent.check(load_task("pointnav_gps_compass"))


def test_a_manifest_names_the_words_of_its_questions_and_answers(agent: PackagePolicy) -> None:
    vocabulary = agent.manifest.vocabulary
    assert vocabulary is not None
    with pytest.raises(ValueError, match="'vocabulary' goes with"):
        replace(agent.manifest, vocabulary=None)
    with pytest.raises(ValueError, match="one for each of"):
        replace(agent.manifest, vocabulary=replace(vocabulary, answers=vocabulary.answers[1:]))
    with pytest.raises(ValueError, match="once"):
        Vocabulary(("a", "a"), ())
