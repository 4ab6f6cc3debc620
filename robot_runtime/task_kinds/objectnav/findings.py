"""Findings about episodes for tasks of object navigation."""

from collections.abc import Iterator

from typing_extensions import override

from robot_runtime.datasets.findings import Findings, Problem
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.objectnav.kind import KIND
from robot_runtime.tasks.episode import Episode


class ObjectFindings(Findings):
    """Findings about the category that a task asks for, in episodes of any origin."""

    rank = 0

    @override
    def of_episode(self, episode: Episode) -> Iterator[Problem]:
        if self.task is not None and self.task.kind == "objectnav" and episode.category is None:
            yield "unknown category", f"none, and task {self.task.name} asks for one"

    @override
    def targets(self, episode: Episode, scene: Scene) -> list[tuple[float, float]] | None:
        if self.task is None or self.task.kind != "objectnav":
            return None
        return KIND.targets(self.task, episode, scene)
