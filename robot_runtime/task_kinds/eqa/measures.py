"""Measures of embodied question answering: navigation and the answer (Das et al. 2018, section 5).

The answer is in the record of the last step. A scored answer is right if the true one alone has the highest score: an
agent that scores all answers equally has answered nothing. The rank is among all answers of the dataset; equal scores
share the mean of their places. Without an answer the episode is wrong, and all answers share the places, so that
abstentions count in the mean rank. A single word or id has no rank, as in the paper's human study.
"""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.metrics.functional.eqa import answer_rank, eqa_navigation
from robot_runtime.metrics.measures import ROOM_METRICS, Measures, MetricDefinition, Run, in_rooms
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.records import ANSWER, EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.task_kinds.eqa import kind as eqa


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
        self._vocabulary = frozenset(map(eqa.normalized, eqa.answer_vocabulary(header.episode)))
        self._right = False
        self._rank = self._rank_of_truth({}) if self._vocabulary else None

    def on_step(self, record: StepRecord) -> None:
        """Judge the step's answer, if it has one. Raises ``RecordingError`` if it cannot be compared with the truth."""
        if ANSWER in record.policy_info:
            self._right, self._rank = self._judged(record.policy_info[ANSWER], f"step {record.index}")

    @override
    def holds(self, pose: SE2, distance_m: float) -> bool:
        return self._right

    @override
    def facets(self) -> Mapping[str, str]:
        rooms = {"room": " or ".join(room.id for room in self._rooms)} if self._rooms else {}
        return {**rooms, "question_type": self._question.type}

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
            "answer": "of the last step; equal to the true one but for case and outer spaces; none and a tie are wrong",
            "answer_rank": "mean place of equal scores; without scores among all answers; none of a single answer",
            "answer_vocabulary": len(self._vocabulary) or "unknown: the answers that have scores",
            "in_room": "the robot's centre; the start counts",
        }

    def _judged(self, answer: Any, where: str) -> tuple[bool, float | None]:
        """Whether the answer is right, and the rank of the true one among scored answers."""
        asked = self._question
        if answer is None:
            return False, self._rank_of_truth({}) if self._vocabulary else None
        if isinstance(answer, str):
            return eqa.normalized(answer) == eqa.normalized(asked.answer), None
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
        """Rank of the true answer; answers without a score share the places behind all others."""
        truth = eqa.normalized(self._question.answer)
        best = dict.fromkeys((*sorted(self._vocabulary), truth), -math.inf)
        for word, score in scores.items():
            name = eqa.normalized(word)
            best[name] = max(float(score), best.get(name, -math.inf))
        return answer_rank([*best.values()], [*best].index(truth), ties="mean")


def _is_score(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
