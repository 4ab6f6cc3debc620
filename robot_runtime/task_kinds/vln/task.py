"""Instruction following in continuous environments (R2R-CE, Krantz et al. 2020; RxR-CE)."""

from __future__ import annotations

from dataclasses import replace

from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, Goal, Instruction
from robot_runtime.tasks.task import Task


def instruction(episode: Episode) -> Instruction:
    """The instruction of the episode.

    Raises:
        EpisodeError: the episode has no instruction.
    """
    if episode.instruction is None or not episode.instruction.text.strip():
        raise EpisodeError(f"episode {episode.id!r}: has no instruction", "use episodes in R2R-CE's or RxR-CE's schema")
    return episode.instruction


def resolve_goals(task: Task, scene: Scene, episode: Episode) -> Episode:
    """The episode with the end of its reference path as goal, where its file states none.

    Raises:
        EpisodeError: it has no instruction, or neither goal nor reference path (the test splits have none).
    """
    instruction(episode)
    if episode.goals:
        return episode
    if not episode.reference_path:
        raise EpisodeError(
            f"episode {episode.id!r}: has neither goals nor a reference path, so nothing can be measured",
            "use a split that has them: R2R-CE and RxR-CE withhold those of 'test' and 'test_challenge'",
        )
    return replace(episode, goals=(Goal(*episode.reference_path[-1]),))


def targets(task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
    """The points (x, y in map, meters) that distance is measured to: the goals. Raises as :func:`resolve_goals`."""
    return [(goal.x_m, goal.y_m) for goal in resolve_goals(task, scene, episode).goals]
