"""The part of the shortest-path oracle that differs between kinds of tasks; its defaults are those of plain navigation.

A package offers it by an entry point of its kind's name::

    [project.entry-points."robot_runtime.oracles"]
    gatenav = "gatenav.oracle:GateOracle"
"""

from typing import ClassVar

from robot_runtime.common.plugins import Registry
from robot_runtime.policy import Answer, Policy
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task


class KindOracle:
    """What :class:`~robot_runtime.policies.baselines.oracle.Oracle` needs of a kind of task.

    Attributes:
        faces_goal: whether it turns to the nearest goal and looks up or down at it before it stops.
    """

    faces_goal: ClassVar[bool] = False

    def places(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        """The points (x, y in map, meters) of which it goes to the nearest, in an episode with resolved goals.

        Raises:
            PolicyError: the episode lacks what only the oracle needs.
        """
        return kind_of(task).targets(task, episode, scene)

    def answer(self, episode: Episode) -> Answer | None:
        """The right answer to the episode's question; None if it has none."""
        return None

    def policy(self) -> Policy | None:
        """A policy that solves the whole episode, for a kind that is more than navigation; None to go and stop."""
        return None


ORACLES: Registry[type[KindOracle]] = Registry(
    "robot_runtime.oracles", "oracle of a kind of task", KindOracle, classes=True
)


def oracle_of(task: Task) -> KindOracle:
    """The oracle's part for a task's kind; that of plain navigation if the kind offers none.

    Raises:
        PluginError: the package that offers it cannot be used.
    """
    return (ORACLES.find(task.kind) or KindOracle)()
