"""Findings about instructions, and the presence of ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from typing_extensions import override

from robot_runtime.datasets.findings import Findings, Problem
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.vln.task import Route
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


class RouteFindings(Findings):
    """Findings about episodes with instructions."""

    checks: ClassVar[Mapping[str, str]] = {
        "empty instruction": "has an instruction without words",
        "no ground truth": "others of its dataset have a ground-truth path, it has none",
    }
    rank = 10

    def __init__(self, task: Task | None, scene: Scene | None) -> None:
        super().__init__(task, scene)
        self._some_have_truth = False

    @override
    def of_episode(self, episode: Episode) -> Iterator[Problem]:
        instruction = Route.of(episode).instruction
        if instruction is None:
            return
        if not instruction.text.strip():
            yield "empty instruction", repr(instruction.text)
        has_truth = "ground_truth" in episode.info
        self._some_have_truth |= has_truth
        if self._some_have_truth and not has_truth:
            yield "no ground truth", "not in the _gt file"

    @override
    def targets(self, episode: Episode, scene: Scene) -> list[tuple[float, float]] | None:
        path = Route.of(episode).reference_path
        return None if episode.goals else [point[:2] for point in path[-1:]] or None
