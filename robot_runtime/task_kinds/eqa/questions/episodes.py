"""Episodes of questions: go to the object, stop, answer."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from robot_runtime.actions.discrete import Magnitudes
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.eqa.kind import Inquiry, Question
from robot_runtime.task_kinds.eqa.questions.dataset import QuestionSet, SceneQuestion
from robot_runtime.task_kinds.eqa.questions.starts import ActionPath, PathFinder
from robot_runtime.tasks.categories import object_goal
from robot_runtime.tasks.episode import Episode, Goal

ACTIONS_BEFORE_TARGET = (10, 30, 50)
"""T-10, T-30 and T-50 of Das et al. 2018, table 1."""

EQA_MAGNITUDES = Magnitudes(forward_m=0.25, turn_deg=9.0, tilt_deg=30.0)
"""Das et al. 2018, section 4.1 (``move_sensitivity`` 0.5 m in the code); the task has no tilt."""

LOCOBOT_RADIUS_M = 0.18


@dataclass(frozen=True)
class Skipped:
    """A question, or one start of it, without an episode, and the reason."""

    question: str
    reason: str


@dataclass(frozen=True)
class QuestionEpisodes:
    """Episodes with questions, and those that were skipped."""

    episodes: tuple[Episode, ...]
    skipped: tuple[Skipped, ...]

    def reasons(self) -> dict[str, int]:
        """Number of occurrences of each reason."""
        return dict(Counter(item.reason for item in self.skipped))


def question_episodes(
    questions: QuestionSet,
    scenes: Sequence[Scene],
    seed: int = 0,
    actions_before_target: Sequence[int] = ACTIONS_BEFORE_TARGET,
    magnitudes: Magnitudes = EQA_MAGNITUDES,
    radius_m: float = LOCOBOT_RADIUS_M,
    on_question: Callable[[], None] | None = None,
) -> QuestionEpisodes:
    """One episode per question and start, for every question with an object to go to.

    The goals are the question's targets with their view points; the start is ``actions_before_target`` primitive
    actions before the end of a shortest path to them (:mod:`robot_runtime.task_kinds.eqa.questions.starts`).
    ``Episode.info`` holds the vocabularies of the whole question set and, under ``info``, ``start``
    ("T-10"), ``actions_to_target``, the question's key and its rooms.

    Questions without targets (absence, several to count, rooms, distances), targets without view points and paths that
    are too short for a start are skipped, with the reason.

    Raises:
        EpisodeError: a scene of the questions is missing, or was changed after they were generated.
    """
    by_name = {scene.name: scene for scene in scenes}
    for name, digest in questions.scenes.items():
        if name not in by_name:
            raise EpisodeError(f"scene {name!r} of the questions is missing", "pass all scenes of the questions")
        if by_name[name].digest != digest:
            raise EpisodeError(
                f"{by_name[name].folder}: was changed after the questions were generated",
                "generate the questions again",
            )
    builder = _EpisodeBuilder(questions, magnitudes, radius_m, seed, tuple(actions_before_target))
    for name in sorted(questions.scenes):
        builder.add(by_name[name], on_question or _nothing)
    return QuestionEpisodes(tuple(builder.episodes), tuple(builder.skipped))


class _EpisodeBuilder:
    """Collector of the episodes, scene by scene; questions about the same targets share their path."""

    def __init__(
        self, questions: QuestionSet, magnitudes: Magnitudes, radius_m: float, seed: int, before: tuple[int, ...]
    ) -> None:
        self.episodes: list[Episode] = []
        self.skipped: list[Skipped] = []
        self._questions = questions
        self._arguments = (magnitudes, radius_m, seed)
        self._before = before
        self._answers = {answer: token for token, answer in enumerate(questions.answers)}
        self._vocabularies = {
            "question_vocab": {"word_list": list(questions.words)},
            "answer_vocab": {"word_list": list(questions.answers)},
        }

    def add(self, scene: Scene, on_question: Callable[[], None]) -> None:
        finder = PathFinder(scene, *self._arguments)
        paths: dict[tuple[str, ...], ActionPath | None] = {}
        for question in self._questions.questions:
            if question.scene == scene.name:
                self._add_question(scene, finder, question, paths)
                on_question()

    def _add_question(
        self, scene: Scene, finder: PathFinder, question: SceneQuestion, paths: dict[tuple[str, ...], ActionPath | None]
    ) -> None:
        goals = tuple(goal for goal in _goals(scene, question) if goal.view_points)
        if not goals:
            why = "its targets have no view points" if question.targets else "it has no single object to go to"
            self.skipped.append(Skipped(question.key, why))
            return
        if question.targets not in paths:
            paths[question.targets] = finder.path(goals, max(self._before, default=0))
        path = paths[question.targets]
        if path is None:
            self.skipped.append(Skipped(question.key, "no path of actions leads to its targets"))
            return
        field = finder.space.field([(view.x_m, view.y_m) for goal in goals for view in goal.view_points])
        for actions in self._before:
            start = path.before_end(actions)
            if start is None:
                why = f"the path to its targets has fewer than {actions} actions"
                self.skipped.append(Skipped(question.key, why))
                continue
            info: dict[str, Any] = {
                "start": f"T-{actions}",
                "actions_to_target": actions,
                "question": question.key,
                "rooms": list(question.rooms),
            }
            self.episodes.append(
                Episode(
                    id=str(len(self.episodes)),
                    scene=scene.name,
                    start=start,
                    goals=goals,
                    shortest_path_m=field.at(start.x_m, start.y_m),
                    shortest_path=tuple((float(x), float(y)) for x, y in field.path(start.x_m, start.y_m)),
                    info={"dataset": self._vocabularies, "info": info},
                    details=Inquiry(
                        Question(
                            question.text,
                            question.answer,
                            question.type,
                            self._questions.tokens(question),
                            self._answers[question.answer],
                        )
                    ),
                )
            )


def _goals(scene: Scene, question: SceneQuestion) -> tuple[Goal, ...]:
    return tuple(object_goal(scene, scene.object(target)) for target in question.targets)


def _nothing() -> None:
    pass
