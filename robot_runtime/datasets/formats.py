"""JSON formats of episode files, by name.

A package offers a format by an entry point whose object is an :class:`EpisodeFormat`::

    [project.entry-points."robot_runtime.episode_formats"]
    gates = "gatenav.format:FORMAT"
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from robot_runtime.common.plugins import Registry
from robot_runtime.datasets.io import Reader
from robot_runtime.errors import EpisodeError, PluginError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


@dataclass(frozen=True)
class EpisodeFormat:
    """A JSON format of episode files.

    Attributes:
        title: name of the format for people, "PointNav-v1".
        kind: kind of task whose episodes such files have.
        matches: function that tells whether a JSON document has the format. Like ``reader``, it also accepts a
            document's outline, which contains only its first episode, so that files of any size can be read. It raises
            ``EpisodeError``, without the path, for a relative of the format that it can name but cannot read.
        reader: function that makes the reader of a document's episodes from the document, or its outline, and its path;
            raises ``EpisodeError``.
        save: function that writes episodes of a task to a file; raises ``EpisodeError``. None if such files are only
            read.
        writes: function that tells whether episodes of a task are saved in the format, unless the name of the file asks
            for another.
        companions: function from a file's path to the paths of files that belong to it and have no episodes themselves.
        companion_problems: function that yields what is wrong with those files, as sentences, from the file's path, its
            document or outline, and the ids of the dataset's episodes; raises ``EpisodeError``.
        rank: place of the format when a document is recognized and a format for saving is chosen, the lowest first;
            the general formats, which match what no other does, have 60 or more.
    """

    title: str
    kind: str
    matches: Callable[[Any], bool]
    reader: Callable[[Any, Path], Reader]
    save: Callable[[Path, Sequence[Episode], Task], None] | None = None
    writes: Callable[[Sequence[Episode], Task], bool] = lambda episodes, task: False
    companions: Callable[[Path], Sequence[Path]] = lambda path: ()
    companion_problems: Callable[[Path, Any, Set[str]], Iterable[str]] = lambda path, document, ids: ()
    rank: int = 50


FORMATS: Registry[EpisodeFormat] = Registry("robot_runtime.episode_formats", "format of episode files", EpisodeFormat)


def usable_formats() -> list[EpisodeFormat]:
    """The formats that can be loaded, by rank, and by name where ranks are equal, this project's own first."""
    return sorted(FORMATS.usable().values(), key=lambda item: item.rank)


def format_of(document: Any, path: Path) -> EpisodeFormat:
    """The format of a JSON document.

    Raises:
        EpisodeError: the list of episodes is empty, or no format matches; names the formats that cannot be used, whose
            files these may be.
    """
    if document == []:
        raise EpisodeError(f"{path}: has no episodes: it is an empty list", "use a file with episodes")
    items = usable_formats()
    faults: list[str] = []
    try:
        found = next((item for item in items if _matches(item, document, faults)), None)
    except EpisodeError as error:
        raise EpisodeError(f"{path}: {error.message}", error.remedy) from error
    if found is not None:
        return found
    faults += filter(None, map(_fault, FORMATS))
    raise EpisodeError(
        "; ".join((f"{path}: is of an unknown schema: {_description(document)}", *faults)),
        f"use one of {', '.join(item.title for item in items)}, or the runtime's YAML",
    )


def _matches(item: EpisodeFormat, document: Any, faults: list[str]) -> bool:
    try:
        return item.matches(document)
    except EpisodeError:
        raise
    except Exception as error:  # noqa: BLE001 - a stranger's function may raise anything, and other formats go on
        faults.append(f"the format {item.title} cannot tell: {type(error).__name__}: {error}")
        return False


def _fault(name: str) -> str:
    """The reason why a format cannot be loaded; empty if it can."""
    try:
        FORMATS.load(name)
    except PluginError as error:
        return error.message
    return ""


def _description(document: Any) -> str:
    if isinstance(document, dict):
        return f"an object with the keys {', '.join(sorted(map(str, document))[:8]) or '(none)'}"
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return f"a list of objects with the keys {', '.join(sorted(map(str, document[0]))[:8])}"
    return f"a {type(document).__name__}"


class Generator(Protocol):
    """Interface of a generator of the episodes of a kind of task: an entry point of the kind's name, a function.

    Its group is ``robot_runtime.generators``: ``gatenav = "gatenav.generate:generate"``.
    """

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
