"""Findings about episodes that only one kind of task has.

A package offers them by an entry point of the kind's name, whose object is a subclass of :class:`Findings`::

    [project.entry-points."robot_runtime.episode_findings"]
    gatenav = "gatenav.findings:GateFindings"
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from robot_runtime.common.plugins import Registry
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task

Problem = tuple[str, str]
"""The name of a check, and the detail of what it found."""


class Findings:
    """Checks of a dataset; episodes of all kinds are given to those of each kind, in the order of the dataset.

    Args:
        task: task that the episodes are checked for; None for no certain one.
        scene: scene that they are checked against; None for checks without a map.

    Attributes:
        checks: meaning of each check's finding by name, in the order of reports.
        scene_checks: the same for checks that need a map; reports have them last.
        rank: place of these checks among those of other kinds, the lowest first.
    """

    checks: ClassVar[Mapping[str, str]] = {}
    scene_checks: ClassVar[Mapping[str, str]] = {}
    rank: ClassVar[int] = 100

    def __init__(self, task: Task | None, scene: Scene | None) -> None:
        self.task, self.scene = task, scene

    def of_episode(self, episode: Episode) -> Iterator[Problem]:
        """Yield what is wrong with an episode by itself, or with it and those before it."""
        yield from ()

    def in_scene(self, episode: Episode, scene: Scene) -> Iterator[Problem]:
        """Yield what is wrong with an episode of the scene on the scene's map."""
        yield from ()

    def targets(self, episode: Episode, scene: Scene) -> list[tuple[float, float]] | None:
        """Places (x, y in map, meters) that an episode of the scene leads to; None for those of its goals.

        Raises:
            EpisodeError: the scene has no such place.
        """
        return None


FINDINGS: Registry[type[Findings]] = Registry(
    "robot_runtime.episode_findings", "findings about episodes of a kind of task", Findings, classes=True
)


def all_findings() -> list[type[Findings]]:
    """The findings of all installed kinds of tasks that can be loaded, by rank."""
    return sorted(FINDINGS.usable().values(), key=lambda findings: findings.rank)


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a mapping: unmodeled fields may have any type."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value if it is a list: unmodeled fields may have any type."""
    return value if isinstance(value, list) else []
