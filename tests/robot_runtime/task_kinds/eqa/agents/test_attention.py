"""The learned answerers that ship."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.errors import ConfigError, PolicyMismatch
from robot_runtime.policies.package.vocabulary import question_tokens
from robot_runtime.task_kinds.eqa.agents.attention import MODES, EqaAttention, LearnedAnswerer
from robot_runtime.tasks.task import load_task


@pytest.mark.parametrize("mode", MODES)
def test_scores_are_probabilities_of_the_vocabulary(mode: str) -> None:
    answerer = LearnedAnswerer(mode)
    for _ in range(2):
        answerer.reset()
        answerer.observe(np.full((224, 224, 3), 120, np.uint8))
        scores = answerer.scores("What room is the toilet located in?")
        assert sum(scores.values()) == pytest.approx(1, abs=1e-4)
        assert max(scores, key=lambda word: scores[word]) == "bathroom"  # which even the blind one knows


def test_only_the_blind_one_ignores_the_frames() -> None:
    changes = {}
    for mode in MODES:
        answerer, seen = LearnedAnswerer(mode), []
        for color in ((140, 31, 29), (37, 66, 116)):
            answerer.reset()
            answerer.observe(np.full((224, 224, 3), color, np.uint8))
            seen.append(answerer.scores("What color is the sofa?"))
        changes[mode] = max(abs(seen[0][word] - seen[1][word]) for word in seen[0])
    assert changes["blind"] == 0
    assert min(changes["last"], changes["attention"]) > 0.05


def test_unknown_words_are_left_out() -> None:
    np.testing.assert_array_equal(question_tokens("Is IT big ?", ("big", "is"), 4), [[2, 1, 0, 0]])


def test_what_does_not_exist_is_named() -> None:
    with raises_naming(ConfigError, "there is no answerer 'oracle'"):
        LearnedAnswerer("oracle")
    with raises_naming(PolicyMismatch, "'eqa-attention'", "kind eqa"):
        EqaAttention().check(load_task("pointnav_gps_compass"))
