"""Measures of embodied question answering: navigation and the answer (Das et al. 2018, section 5).

The answer is in the record of the last step. An episode without an answer counts as answered wrongly. Only answers with
scores have a rank; the paper leaves the rank of a single answer empty, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.metrics.functional.eqa import answer_rank, eqa_navigation
from robot_runtime.metrics.measures import Measures, MetricDefinition, Run
from robot_runtime.metrics.rooms import ROOM_METRICS, in_rooms
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.records import ANSWER, EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.task_kinds.eqa import task as eqa


class QuestionMeasures(Measures):
    """Success is the right answer; SPL and SoftSPL are not defined."""

    rank = 3
    defines: ClassVar[tuple[MetricDefinition, ...]] = (
        MetricDefinition("answer_accuracy", share=True),
        MetricDefinition("answer_rank", "answer rank", digits=2),
        MetricDefinition("d_T_m", "d_T", "m", 2, histogram=True),
        MetricDefinition("d_delta_m", "d_Δ", "m", 2),
        MetricDefinition("d_min_m", "d_min", "m", 2),
        *ROOM_METRICS,
    )

    def __init__(self, header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> None:
        super().__init__(header, rules, geodesic)
        self._question = eqa.question(header.episode)
        self._rooms = eqa.goal_rooms(header.task, header.scene, header.episode)
        self._right = False
        self._rank: float | None = None

    def on_step(self, record: StepRecord) -> None:
        """Judge the step's answer, if it has one. Raises ``RecordingError`` if it cannot be compared with the truth."""
        if ANSWER in record.policy_info:
            self._right, self._rank = self._judged(record.policy_info[ANSWER], f"step {record.index}")

    @override
    def holds(self, pose: SE2, distance_m: float) -> bool:
        return self._right

    @override
    def metrics(self, run: Run) -> Metrics:
        distances_m = run.distances_m()
        known = all(map(math.isfinite, distances_m))
        inside = in_rooms(run.poses, self._rooms)
        # The paper's code leaves out the distances of an agent that was off the map; the other metrics are kept.
        moved = eqa_navigation(distances_m, inside, run.stopped) if known else None
        return {
            "spl": None,
            "soft_spl": None,
            "answer_accuracy": run.succeeded,
            "answer_rank": self._rank,
            "d_T_m": moved.d_T if moved else None,
            "d_delta_m": moved.d_delta if moved else None,
            "d_min_m": moved.d_min if moved else None,
            "r_T": inside[-1] if self._rooms else None,
            "r_enter": any(inside) if self._rooms else None,
            "stopped": run.stopped,
        }

    @override
    def choices(self) -> dict[str, Any]:
        return {
            "answer": "of the last step; equal to the true one but for case and outer spaces; none is wrong",
            "answer_rank": "1 + the number of higher scores; of scored answers only",
            "in_room": "the robot's centre; the start counts",
        }

    def _judged(self, answer: Any, where: str) -> tuple[bool, float | None]:
        """Whether the answer is right, and the rank of the true one among scored answers."""
        asked = self._question
        if answer is None:
            return False, None
        if isinstance(answer, str):
            return _same(answer, asked.answer), None
        if isinstance(answer, Integral) and not isinstance(answer, bool):
            if asked.answer_token is None:
                raise RecordingError(
                    f"{where}: the answer is id {answer}, but the question has no 'answer_token' to compare it with",
                    "answer in words, or use a dataset with an answer vocabulary",
                )
            return int(answer) == asked.answer_token, None
        if isinstance(answer, Mapping) and answer and all(map(_is_score, answer.values())):
            rank = self._rank_of_truth(answer)
            return rank == 1, rank
        raise RecordingError(
            f"{where}: the answer {answer!r} is neither text, nor an id, nor {{answer: finite score}}",
            "correct what the policy's answer() returns",
        )

    def _rank_of_truth(self, scores: Mapping[str, float]) -> float:
        """Rank of the true answer; an answer without a score ranks behind all others."""
        words = [*scores, self._question.answer]
        truth = next(number for number, word in enumerate(words) if _same(word, self._question.answer))
        return answer_rank([*map(float, scores.values()), -math.inf], truth)


def _is_score(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _same(a: str, b: str) -> bool:
    return a.strip().casefold() == b.strip().casefold()
