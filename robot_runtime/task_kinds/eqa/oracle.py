"""The shortest-path oracle in embodied question answering, which knows the answer."""

from typing import ClassVar

from typing_extensions import override

from robot_runtime.policies.baselines.kind_oracle import KindOracle
from robot_runtime.policy import Answer
from robot_runtime.task_kinds.eqa.kind import Inquiry
from robot_runtime.tasks.episode import Episode


class QuestionOracle(KindOracle):
    """Goes to a goal, faces it, and returns the recorded answer."""

    faces_goal: ClassVar[bool] = True

    @override
    def answer(self, episode: Episode) -> Answer | None:
        question = Inquiry.of(episode).question
        return None if question is None else question.answer
