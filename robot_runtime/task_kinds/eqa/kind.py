"""The kind of task ``eqa``: go to what a question is about, stop, answer."""

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.eqa import task as eqa
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor, goal_of, text_sensor, token_sensor
from robot_runtime.tasks.task import Task


def _in_habitat(seen: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The tokens of ``QuestionSensor`` (habitat-lab ``tasks/eqa/eqa.py``), the text where the task shows none."""
    text, tokens = str(seen["question"]), seen.get("question_tokens")
    return {"question": text if tokens is None else tokens[tokens >= 0].tolist(), "question_text": text}


class Eqa(TaskKind):
    """Embodied question answering."""

    details_type: ClassVar[type] = eqa.Inquiry
    sensors: ClassVar[Mapping[str, Sensor]] = {
        "question": text_sensor(
            "the question in words", lambda moment: goal_of(moment, eqa.Question).text, eqa.Question, _in_habitat
        ),
        # 0, with which R2R-CE pads, is a word of a question.
        "question_tokens": token_sensor(
            "question", -1, lambda moment: goal_of(moment, eqa.Question).tokens, eqa.Question
        ),
    }
    success_rules: ClassVar[tuple[str, ...]] = ("answer",)
    distance_rules: ClassVar[tuple[str, ...]] = ()

    @override
    def check_task(self, task: Task) -> None:
        super().check_task(task)
        if task.max_seconds is not None:
            raise ValueError("a question is asked at the stop or the last step: the kind eqa has no max_seconds")

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        return eqa.resolve_goals(task, scene, episode)

    @override
    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        return eqa.targets(task, episode, scene)

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return eqa.Inquiry.of(episode).question

    @override
    def answer_due(self, task: Task, action: Decision, step: int) -> bool:
        return action is Action.STOP or step >= task.max_steps


KIND = Eqa()
