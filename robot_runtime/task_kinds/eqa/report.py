"""Panels of embodied question answering: question and answer, and the rooms of the objects that it is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from markupsafe import Markup
from typing_extensions import override

from robot_runtime.records import ANSWER, EVIDENCE
from robot_runtime.scenes.scene import Room
from robot_runtime.scoring.report.rendering import render
from robot_runtime.scoring.report.room_panels import RoomPanels
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.task_kinds.eqa import kind as eqa
from robot_runtime.task_kinds.eqa.kind import Inquiry, answer_vocabulary, normalized

SHOWN_ANSWERS = 8


@dataclass(frozen=True)
class QuestionResult:
    """A question and its answer.

    Attributes:
        question: text of the question.
        type: type of the question.
        truth: correct answer.
        given: the agent's answer.
        right: whether the agent's answer is correct; None without a score.
        rank: rank of the correct answer among scored ones; None without scored answers.
        ranked: scored answers, best first, with their scores and whether each is correct.
        evidence: what the answer rests on, in the agent's words.
    """

    question: str
    type: str
    truth: str
    given: str
    right: bool | None
    rank: float | None
    ranked: tuple[tuple[str, float, bool], ...]
    evidence: tuple[str, ...] = ()


class QuestionPanels(RoomPanels):
    """Question and answer."""

    @classmethod
    @override
    def failure(cls, score: EpisodeScore) -> str:
        return "wrong or no answer"

    @override
    def find_rooms(self) -> Sequence[Room]:
        header = self.data.header
        return eqa.goal_rooms(header.task, header.scene, header.episode)

    @override
    def statements(self) -> Markup:
        result = self.question_result()
        if result is None:
            return Markup("")
        return Markup(render("question.html", "robot_runtime.task_kinds.eqa", result=result))

    def question_result(self) -> QuestionResult | None:
        """Question and answer of the episode; None without a question."""
        data, asked, answer = self.data, Inquiry.of(self.data.header.episode).question, self._last(ANSWER)
        if asked is None:
            return None
        ranked: tuple[tuple[str, float, bool], ...] = ()
        if isinstance(answer, Mapping):
            best = sorted(answer.items(), key=lambda item: -float(item[1]))
            truth = normalized(asked.answer)
            ranked = tuple((str(word), float(value), normalized(str(word)) == truth) for word, value in best)
            tied = {normalized(word) for word, value, _ in ranked if value == ranked[0][1]}
            given = "none" if not tied else ranked[0][0] if len(tied) == 1 else f"none: {len(tied)} have the best score"
        elif isinstance(answer, Integral):
            given = f"answer id {answer}"
        else:
            given = "none" if answer is None else str(answer)
        right = data.score.metrics.get("answer_accuracy")
        rank = data.score.metrics.get("answer_rank")
        evidence = self._last(EVIDENCE)
        return QuestionResult(
            question=asked.text,
            type=asked.type,
            truth=asked.answer,
            given=given,
            right=None if right is None else bool(right),
            rank=None if rank is None else float(rank),
            ranked=ranked[:SHOWN_ANSWERS],
            evidence=(
                *(map(str, evidence) if isinstance(evidence, list | tuple) else ()),
                *self._outside_vocabulary(given),
            ),
        )

    def _last(self, name: str) -> Any:
        """The last value of that name in the policy's information; None if there is none."""
        values = [record.policy_info[name] for record in self.data.records if name in record.policy_info]
        return values[-1] if values else None

    def _outside_vocabulary(self, given: str) -> tuple[str, ...]:
        """A sentence, if the answer is none of the dataset's."""
        words = answer_vocabulary(self.data.header.episode)
        if not words or given.startswith(("none", "answer id")) or normalized(given) in map(normalized, words):
            return ()
        return (f"{given!r} is none of the dataset's {len(words)} answers",)
