"""The shortest-path oracle in AreaGoal: it goes well inside a room, where no error of the pose puts it outside."""

from typing_extensions import override

from robot_runtime.policies.baselines.kind_oracle import KindOracle
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.areagoal import kind as areagoal
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


class AreaOracle(KindOracle):
    """Goes well inside the nearest room of the category."""

    @override
    def places(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        return areagoal.well_inside(task, episode, scene)
