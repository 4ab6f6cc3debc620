"""Generator of episodes with questions for any scene; deterministic by seed.

Questions follow the rules ``few_scenes``; starts are 10, 30 and 50 actions before the target, in turns.
"""

from dataclasses import replace
from itertools import groupby

from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.eqa.questions.dataset import sample_questions
from robot_runtime.task_kinds.eqa.questions.episodes import question_episodes
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


def generate(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` episodes with questions about the scene, of every template in turn.

    Raises:
        EpisodeError: fewer questions than that have a target that the robot can see and get to.
        SceneError: the scene has no view points.
    """
    asked = sample_questions(generate_questions([scene], seed=seed), 2 * count, seed)
    moves = {"magnitudes": task.magnitudes, "radius_m": task.robot_radius_m}
    made = question_episodes(asked, [scene], seed, **moves).episodes  # type: ignore[arg-type]
    by_question = [list(group) for _, group in groupby(made, key=lambda episode: episode.info["info"]["question"])]
    if len(by_question) < count:
        raise EpisodeError(
            f"scene {scene.name!r}: {len(by_question)} questions have a target that can be seen and reached",
            "ask for fewer episodes, or make more with `robot-runtime episodes questions`",
        )
    return [replace(starts[i % len(starts)], id=str(i)) for i, starts in enumerate(by_question[:count])]
