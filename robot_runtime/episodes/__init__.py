"""Datasets: one module per format, all read into the same Episode.

A module has ``matches(document)``, ``parse(document, path)``, ``load(path)`` and, where the runtime writes the format,
``save(path, episodes)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from robot_runtime.episodes import habitat, habitat_objectnav, habitat_pointnav, robothor
from robot_runtime.episodes.episode import Episode
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.task import Task


class Format(Protocol):
    """What each format's module can do."""

    def matches(self, document: Any) -> bool:
        """Whether a JSON document looks like the format."""

    def parse(self, document: Any, path: Path) -> list[Episode]:
        """All episodes of a document read from ``path``. Raises ``EpisodeError``."""


FORMATS: tuple[Format, ...] = (habitat_objectnav, habitat_pointnav, robothor)


def load_episodes(path: Path) -> list[Episode]:
    """All episodes of a file, whatever its format, or of all ``.json`` and ``.json.gz`` files of a folder.

    The format is told by content: Habitat PointNav-v1 or ObjectNav-v1, or RoboTHOR; JSON, plain or gzipped.

    Raises:
        EpisodeError: no such file, truncated, not JSON, of an unknown schema, or a field is missing or wrong; names
            the file, the episode, the field and the remedy.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.endswith((".json", ".json.gz")))
        if not files:
            raise EpisodeError(f"{path}: has no .json or .json.gz file", "name a file or folder that has episodes")
        return [episode for file in files for episode in load_episodes(file)]
    return [episode for file, document in habitat.read_documents(path) for episode in _parse(document, file)]


def save_episodes(path: Path, episodes: Sequence[Episode], task: Task) -> None:
    """Write episodes in Habitat's schema of the task's kind. Raises ``EpisodeError``."""
    if task.kind == "objectnav":
        habitat_objectnav.save(path, episodes, {name: category.id for name, category in task.categories.items()})
    else:
        habitat_pointnav.save(path, episodes)


def _parse(document: Any, path: Path) -> list[Episode]:
    for module in FORMATS:
        if module.matches(document):
            return module.parse(document, path)
    raise EpisodeError(
        f"{path}: is of an unknown schema: {_describe(document)}",
        "use a Habitat PointNav-v1 or ObjectNav-v1 file, or a RoboTHOR one",
    )


def _describe(document: Any) -> str:
    if isinstance(document, dict):
        return f"an object with the keys {', '.join(sorted(map(str, document))[:8]) or '(none)'}"
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return f"a list of objects with the keys {', '.join(sorted(map(str, document[0]))[:8])}"
    return f"a {type(document).__name__}"
