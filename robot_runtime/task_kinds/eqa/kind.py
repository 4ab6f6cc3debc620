"""The kind of task ``eqa``: go to what a question is about, stop, answer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Room, Scene
from robot_runtime.tasks.categories import object_goal
from robot_runtime.tasks.episode import Episode, EpisodeDetails
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor, goal_of, text_sensor, token_sensor
from robot_runtime.tasks.task import Task


@dataclass(frozen=True)
class Question(config.Strict):
    """A question about the scene and its answer (EmbodiedQA).

    Attributes:
        text: the question in words.
        answer: the right answer, a word of the vocabulary.
        type: name of the template, e.g. ``color_room``.
        tokens: the question as the dataset's tokens; empty if it has none.
        answer_token: index of the answer in the dataset's vocabulary.
    """

    text: str
    answer: str
    type: str
    tokens: tuple[int, ...] = ()
    answer_token: int | None = None


@dataclass(frozen=True)
class Inquiry(EpisodeDetails, config.Strict):
    """What episodes of embodied question answering have besides the common fields.

    Attributes:
        question: the question and its answer.
    """

    question: Question | None = None

    @property
    @override
    def words(self) -> str:
        return self.question.text if self.question else ""


def question(episode: Episode) -> Question:
    """The question of the episode. Raises ``EpisodeError``: the episode has no question."""
    asked = Inquiry.of(episode).question
    if asked is None or not asked.text.strip():
        raise EpisodeError(
            f"episode {episode.id!r}: has no question",
            "use episodes in MP3D-EQA's schema, or make them with `robot-runtime episodes questions --episodes-out`",
        )
    return asked


def answer_vocabulary(episode: Episode) -> tuple[str, ...]:
    """The answers of the episode's dataset; empty if it states none."""
    dataset = episode.info.get("dataset")
    vocabulary = dataset.get("answer_vocab") if isinstance(dataset, Mapping) else None
    words = vocabulary.get("word_list") if isinstance(vocabulary, Mapping) else None
    return tuple(map(str, words)) if isinstance(words, list | tuple) else ()


def normalized(answer: str) -> str:
    """An answer as it is compared with others: without outer spaces, in lower case."""
    return answer.strip().casefold()


def goal_rooms(task: Task, scene: Scene, episode: Episode) -> tuple[Room, ...]:
    """The rooms that hold the goals, as areas by the task's rule; none if the scene has no room there."""
    known = {item.id: item for item in scene.objects}
    rooms: dict[str, Room] = {}
    for goal in KIND.resolve_goals(task, scene, episode).goals:
        around: list[Room | None] = [room for room in scene.rooms if room.contains(goal.x_m, goal.y_m)]
        if goal.object_id in known:
            around = [scene.room_of(known[goal.object_id])]
        rooms |= {room.id: room for room in around if room is not None}
    return tuple(room.box if task.success.room == "box" else room for room in rooms.values())


def _in_habitat(seen: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The tokens of ``QuestionSensor`` (habitat-lab ``tasks/eqa/py``), the text where the task shows none."""
    text, tokens = str(seen["question"]), seen.get("question_tokens")
    return {"question": text if tokens is None else tokens[tokens >= 0].tolist(), "question_text": text}


class Eqa(TaskKind):
    """Embodied question answering."""

    details_type: ClassVar[type] = Inquiry
    sensors: ClassVar[Mapping[str, Sensor]] = {
        "question": text_sensor(
            "the question in words", lambda moment: goal_of(moment, Question).text, Question, _in_habitat
        ),
        # 0, with which R2R-CE pads, is a word of a question.
        "question_tokens": token_sensor("question", -1, lambda moment: goal_of(moment, Question).tokens, Question),
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
        """The episode with the scene's view points of its goals that are the scene's objects and have none in the file.

        Raises:
            EpisodeError: it has no question, or no goals.
        """
        question(episode)
        if not episode.goals:
            raise EpisodeError(
                f"episode {episode.id!r}: field 'goals' is empty: there is nothing to go to",
                "name the objects that the question is about",
            )
        known = {item.id: item for item in scene.objects}
        goals = tuple(
            object_goal(scene, known[goal.object_id]) if goal.object_id in known and not goal.view_points else goal
            for goal in episode.goals
        )
        return replace(episode, goals=goals)

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return Inquiry.of(episode).question

    @override
    def answer_due(self, task: Task, action: Decision, step: int) -> bool:
        return action is Action.STOP or step >= task.max_steps


KIND = Eqa()
