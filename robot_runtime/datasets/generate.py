"""Generators of episodes for any scene; deterministic by seed.

A package offers the generator of a kind of task by an entry point of that kind's name, whose object is a function::

    [project.entry-points."robot_runtime.generators"]
    gatenav = "gatenav.generate:generate"
"""

from typing import Protocol

from robot_runtime.common.plugins import Registry
from robot_runtime.datasets.formats import usable_formats
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


class Generator(Protocol):
    """Interface of a generator of the episodes of a kind of task."""

    def __call__(self, scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
        """Generate ``count`` episodes, the same for the same seed.

        Raises:
            EpisodeError: the scene has no such episodes; names the reason and the remedy.
        """


GENERATORS: Registry[Generator] = Registry("robot_runtime.generators", "generator of episodes", methods=("__call__",))


def generate_episodes(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` episodes of the task's kind.

    Raises:
        EpisodeError: no package offers a generator of the kind's episodes; or as the kind's generator.
        PluginError: the package that offers the generator cannot be used.
    """
    generate = GENERATORS.find(task.kind)
    if generate is None:
        titles = [item.title for item in usable_formats() if item.kind == task.kind] or ["the runtime's YAML"]
        raise EpisodeError(
            f"task {task.name!r} needs episodes of kind {task.kind}, which cannot be generated",
            f"use --episodes with a file in the format {' or '.join(titles)}",
        )
    return generate(scene, task, count, seed)
