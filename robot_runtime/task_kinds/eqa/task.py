"""Embodied question answering: go to what a question is about, stop, answer (Das et al. 2018; habitat-lab)."""

from __future__ import annotations

from dataclasses import replace

from robot_runtime.actions.continuous import Decision
from robot_runtime.actions.discrete import Action
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Room, Scene
from robot_runtime.task_kinds.objectnav.task import object_goal
from robot_runtime.tasks.episode import Episode, Question
from robot_runtime.tasks.task import Task


def question(episode: Episode) -> Question:
    """The question of the episode.

    Raises:
        EpisodeError: the episode has no question.
    """
    if episode.question is None or not episode.question.text.strip():
        raise EpisodeError(
            f"episode {episode.id!r}: has no question",
            "use episodes in MP3D-EQA's schema, or make them with `robot-runtime episodes questions --episodes-out`",
        )
    return episode.question


def answer_due(task: Task, action: Decision, step: int) -> bool:
    """Whether an action is the one with which a question must be answered: ``stop``, or the last one allowed.

    Args:
        task: of any kind; only those of the kind ``eqa`` ask a question.
        action: the policy's decision.
        step: index of the step that it leads to.
    """
    return task.kind == "eqa" and (action is Action.STOP or step >= task.max_steps)


def resolve_goals(task: Task, scene: Scene, episode: Episode) -> Episode:
    """The episode with the scene's view points of its goals that are objects of the scene and have none in the file.

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


def targets(task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
    """The points (x, y in map, meters) that distance is measured to: each goal's view points, or its position.

    Raises as :func:`resolve_goals`.
    """
    goals = resolve_goals(task, scene, episode).goals
    if task.success.target == "view_points" and any(goal.view_points for goal in goals):
        return [(pose.x_m, pose.y_m) for goal in goals for pose in goal.view_points]
    return [(goal.x_m, goal.y_m) for goal in goals]


def goal_rooms(task: Task, scene: Scene, episode: Episode) -> tuple[Room, ...]:
    """The rooms that hold the goals, as areas by the task's rule; none if the scene has no room there."""
    known = {item.id: item for item in scene.objects}
    rooms: dict[str, Room] = {}
    for goal in resolve_goals(task, scene, episode).goals:
        around: list[Room | None] = [room for room in scene.rooms if room.contains(goal.x_m, goal.y_m)]
        if goal.object_id in known:
            around = [scene.room_of(known[goal.object_id])]
        rooms |= {room.id: room for room in around if room is not None}
    return tuple(room.box if task.success.room == "box" else room for room in rooms.values())
