"""Measures of question answering, computed by hand, and their panels in a report."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from kind_episodes import MISSING, header_of, page, panels, recorded, scored, task_of
from raising import raises_naming
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.measures import COMMON, MEASURES
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.report.panels import outcome
from robot_runtime.scoring.summary import EpisodeScore, score_steps
from robot_runtime.task_kinds.eqa.kind import Inquiry, Question
from robot_runtime.tasks.task import Success


def eqa_header(when: str = "end", **changes: Any) -> EpisodeHeader:
    question = Question("What color is the mug?", "red", "color", (0, 1, 2), 5)
    episode = synthetic.objectnav_episode(category=None, details=Inquiry(question=question), start=SE2(1.0, 1.9, 0.0))
    success = Success("answer", target="view_points", room="box", when=when)
    return synthetic.header(task_of("eqa", success), replace(episode, **changes))


@pytest.mark.parametrize(
    ("answer", "right", "rank"),
    [
        ("red", True, None),
        (" Red ", True, None),
        ("blue", False, None),
        (5, True, None),
        (np.int64(5), True, None),
        (4, False, None),
        ({"red": 0.7, "blue": 0.3}, True, 1.0),
        ({"blue": 0.7, "red": np.float32(0.2), "green": 0.1}, False, 2.0),
        ({"blue": 0.7, "green": 0.1}, False, 3.0),
        (None, False, None),
        (MISSING, False, None),
    ],
)
def test_answers(answer: object, right: bool, rank: float | None) -> None:
    metrics, _ = scored(eqa_header(), [STOP], answer=answer)
    assert metrics["success"] is metrics["answer_accuracy"] is right
    assert metrics["answer_rank"] == rank
    assert metrics["spl"] is None


@pytest.mark.parametrize("answer", [True, 1.5, {}, {"red": "high"}, {"red": math.nan}, ["red"]])
def test_what_is_no_answer_makes_no_score(answer: object) -> None:
    with raises_naming(RecordingError, "step 1", "answer"):
        scored(eqa_header(), [STOP], answer=answer)


def test_an_id_needs_a_vocabulary() -> None:
    header = eqa_header(details=Inquiry(question=Question("What color is the mug?", "red", "color")))
    with raises_naming(RecordingError, "answer_token"):
        scored(header, [STOP], answer=5)


VOCABULARY = {"dataset": {"answer_vocab": {"word_list": ["red", "blue", "green", "white", "black"]}}}


@pytest.mark.parametrize(
    ("answer", "right", "rank"),
    [
        pytest.param(dict.fromkeys(("red", "blue", "green", "white", "black"), 0.5), False, 3.0, id="all equal"),
        pytest.param({"red": 0.0, "blue": 0.0}, False, 1.5, id="a tie of two"),
        pytest.param({"blue": 0.4, "red": 0.4, "green": 0.4}, False, 2.0, id="a tie of three"),
        pytest.param({"blue": 0.2, "green": 0.2, "red": 0.6}, True, 1.0, id="a tie of others"),
        pytest.param(
            {"Red": 0.1, " red ": 0.9, "blue": 0.5}, True, 1.0, id="one answer twice, the better score counts"
        ),
        pytest.param({"blue": 0.9}, False, 3.5, id="the rest share the places behind"),
        pytest.param({"red": -3.0}, True, 1.0, id="scored answers stand before the others"),
        pytest.param({"mauve": 0.9, "blue": 0.8}, False, 4.5, id="a word outside the vocabulary has a place too"),
        pytest.param(None, False, 3.0, id="abstention"),
        pytest.param(MISSING, False, 3.0, id="no answer at all"),
        pytest.param("blue", False, None, id="a single word has no rank"),
    ],
)
def test_ties_are_not_answers_and_abstentions_have_a_rank(answer: object, right: bool, rank: float | None) -> None:
    metrics, choices = scored(eqa_header(info=VOCABULARY), [STOP], answer=answer)
    assert (metrics["success"], metrics["answer_rank"]) == (right, rank)
    assert choices["answer_vocabulary"] == 5


def test_a_tie_without_a_vocabulary_is_wrong_too() -> None:
    metrics, _ = scored(eqa_header(), [STOP], answer={f"word {i}": 0.5 for i in range(36)} | {"red": 0.5})
    assert (metrics["success"], metrics["answer_accuracy"], metrics["answer_rank"]) == (False, False, 19.0)


def test_facets_name_the_question_type() -> None:
    scorer = EpisodeScorer(eqa_header())
    assert scorer.facets()["question_type"] == "color"
    assert scorer.facets()["room"] == "east"


def test_where_the_agent_went() -> None:
    """From the west room, past the doorway at x = 3, to x = 3.5; the nearer view point is (4.0, 2.2)."""
    metrics, _ = scored(eqa_header(), [FORWARD] * 10, answer="red")
    assert (metrics["r_T"], metrics["r_enter"], metrics["stopped"]) == (True, True, False)
    assert metrics["d_T_m"] == pytest.approx(math.hypot(0.5, 0.3), abs=0.03)
    assert metrics["d_T_m"] == metrics["distance_to_goal"] == metrics["d_min_m"]
    assert metrics["d_delta_m"] == pytest.approx(metrics["shortest_path_m"] - metrics["d_T_m"])
    assert metrics["success"] is True  # the paper asks at the step limit, too
    assert scored(eqa_header("stop"), [FORWARD] * 10, answer="red")[0]["success"] is False


def test_in_and_out_again() -> None:
    turn = [LEFT] * 6
    metrics, _ = scored(eqa_header(), [*[FORWARD] * 10, *turn, *[FORWARD] * 4, STOP], answer="red")
    assert (metrics["r_T"], metrics["r_enter"], metrics["stopped"]) == (False, True, True)
    assert metrics["d_min_m"] < metrics["d_T_m"]


def test_without_rooms_the_distances_stand() -> None:
    scene = synthetic.scene()
    header = replace(eqa_header(), scene=replace(scene, file=replace(scene.file, rooms=(), objects=())))
    metrics, _ = scored(header, [STOP], answer="red")
    assert metrics["r_T"] is metrics["r_enter"] is None
    assert metrics["d_T_m"] is not None


def test_same_numbers_as_live(record) -> None:
    header, actions = eqa_header(), [*[FORWARD] * 10, STOP]
    with LogReader(record(header, actions)) as log:
        assert score_steps(log).metrics() == scored(header, actions)[0]


def test_before_the_first_step_nothing_is_known() -> None:
    metrics = EpisodeScorer(eqa_header()).metrics()
    assert set(metrics) == {metric.name for metric in (*COMMON, *MEASURES.load("eqa").defines)}
    assert set(metrics.values()) == {None}


QUESTION = Question("What color is the mug?", "red", "color")


class TestQuestion:
    def header(self) -> EpisodeHeader:
        episode = synthetic.pointnav_episode(details=Inquiry(question=QUESTION))
        return header_of("eqa", Success("answer"), episode)

    @pytest.mark.parametrize(
        ("answer", "given", "rank", "right"),
        [
            ("Red", "Red", None, True),
            ({"blue": 0.5, "red": 0.4, "green": 0.1}, "blue", 2.0, False),
            (None, "none", None, False),
            ({"blue": 0.5, "red": 0.5}, "none: 2 have the best score", 1.5, False),
        ],
    )
    def test_question_and_answer(self, tmp_path: Path, answer: object, given: str, rank: float, right: bool) -> None:
        path = recorded(tmp_path, self.header(), [FORWARD, STOP], answer)
        panel = panels(path).question_result()
        assert (panel.question, panel.truth, panel.given) == (QUESTION.text, "red", given)
        assert (panel.rank, panel.right) == (rank, right)
        text = page(path, tmp_path)
        assert ("true is: red" in text) is not right
        assert ("rank of the truth" in text) is (rank is not None)
        assert rank is None or f"rank of the truth: {rank:g}" in text

    def test_room_over_time(self, tmp_path: Path) -> None:
        svg = str(panels(recorded(tmp_path, self.header(), [FORWARD] * 12 + [STOP])).plots()[-1])
        assert re.findall(r"<title>(.*?)</title>", svg) == ["living room, steps 0 to 8", "kitchen, steps 9 to 13"]
        assert svg.count('class="room-goal"') == 1

    def test_a_failure_is_a_wrong_answer(self) -> None:
        score = EpisodeScore(Path("x"), kind="eqa", end="stop", metrics={"success": False})
        assert outcome(score) == ("lost", "failed: wrong or no answer")
