"""The shortest-path oracle of ``gatenav``: through the gate and on."""

from __future__ import annotations

from gatenav.kind import Gate
from robot_runtime.policies.baselines.kind_oracle import KindOracle
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


class GateOracle(KindOracle):
    """Goes to the middle of the gate."""

    def places(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        return [Gate.of(episode).middle]
