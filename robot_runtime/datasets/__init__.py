"""Datasets of episodes: one module per format, all read into the same Episode.

Each module of a JSON format has ``matches(document)``, ``reader(document, path)`` and ``save(path, episodes)``. The
first two also accept a document's outline, which contains only its first episode: this is how :func:`iter_episodes`
reads files of any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from robot_runtime.datasets import habitat_common, native_yaml
from robot_runtime.datasets.io import Reader, parse, read_json
from robot_runtime.datasets.streaming import outline, records
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.eqa import format_mp3d as mp3d_eqa
from robot_runtime.task_kinds.eqa.task import Inquiry
from robot_runtime.task_kinds.objectnav import format_habitat as habitat_objectnav
from robot_runtime.task_kinds.objectnav import format_robothor as robothor
from robot_runtime.task_kinds.pointnav import format_habitat as habitat_pointnav
from robot_runtime.task_kinds.rearrangement import format_habitat as habitat_rearrange
from robot_runtime.task_kinds.rearrangement import format_ithor as ithor_rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.task_kinds.vln import format_r2r_ce as r2r_ce
from robot_runtime.task_kinds.vln.task import Route
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


class Format(Protocol):
    """Interface of a JSON format's module."""

    def matches(self, document: Any) -> bool:
        """Whether a JSON document, or its outline, has the format."""

    def reader(self, document: Any, path: Path) -> Reader:
        """The reader of a document's episodes, given the document or its outline. Raises ``EpisodeError``."""


FORMATS: tuple[Format, ...] = (
    robothor,
    ithor_rearrangement,
    r2r_ce,
    mp3d_eqa,
    habitat_rearrange,
    habitat_objectnav,
    habitat_pointnav,
)

_SUFFIXES = (".json", ".json.gz", *native_yaml.SUFFIXES)


def load_episodes(path: Path | str) -> list[Episode]:
    """All episodes of a file of any format, or of all files of a folder.

    YAML is recognized by its suffix; JSON, plain or gzipped, by its content (see ``FORMATS``).

    Raises:
        EpisodeError: no such file, truncated, not JSON, of an unknown schema, or a field is missing or wrong; names the
            file, the episode, the field and the remedy.
    """
    return [episode for file in _files(Path(path)) for episode in _load_file(file)]


def iter_episodes(path: Path) -> Iterator[Episode]:
    """The episodes of :func:`load_episodes` one at a time: memory does not grow with their number.

    Only the data that all episodes of a file share is held: goals by category, vocabularies, ground truth.

    Raises:
        EpisodeError: as :func:`load_episodes`, at the episode.
    """
    for episode in iter_readable(path):
        if isinstance(episode, EpisodeError):
            raise episode
        yield episode


def iter_readable(path: Path) -> Iterator[Episode | EpisodeError]:
    """The episodes of :func:`iter_episodes`, with an error in place of each that cannot be read.

    Raises:
        EpisodeError: the file itself cannot be read, or the data that its episodes share.
    """
    for file in _files(path):
        if file.suffix in native_yaml.SUFFIXES:
            yield from native_yaml.iter_readable(file)
            continue
        head = outline(file)
        content = habitat_common.content_files(file, head)
        for part, document in [(part, outline(part)) for part in content] or [(file, head)]:
            read = _format_of(document, part).reader(document, part)
            for index, record in enumerate(records(part, isinstance(document, list))):
                try:
                    episode: Episode | EpisodeError = read(index, record)
                except EpisodeError as error:
                    episode = error
                yield episode


def save_episodes(path: Path, episodes: Sequence[Episode], task: Task) -> None:
    """Write episodes as YAML if the file's name says so, else in Habitat's schema for their kind.

    Habitat has no schema for rooms: for AreaGoal, ObjectNav-v1's ``object_category`` is the kind of room.

    Raises:
        EpisodeError: the schema cannot represent an episode, or the file cannot be written.
    """
    first = episodes[0] if episodes else None
    if path.suffix in native_yaml.SUFFIXES:
        native_yaml.save(path, episodes)
    elif first and Route.of(first).instruction:
        r2r_ce.save(path, episodes)
    elif first and Inquiry.of(first).question:
        mp3d_eqa.save(path, episodes)
    elif first and Layout.of(first).objects:
        habitat_rearrange.save(path, episodes)
    elif task.kind in ("objectnav", "areagoal"):
        habitat_objectnav.save(path, episodes, {name: category.id for name, category in task.categories.items()})
    else:
        habitat_pointnav.save(path, episodes)


def _files(path: Path) -> list[Path]:
    """The file, or the episode files of a folder."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.name.endswith(_SUFFIXES))
    truths = {r2r_ce.ground_truth_file(file) for file in files}
    files = [file for file in files if file not in truths]
    if not files:
        raise EpisodeError(f"{path}: has no {' or '.join(_SUFFIXES)} file", "use a file or folder with episodes")
    return files


def _load_file(path: Path) -> list[Episode]:
    if path.suffix in native_yaml.SUFFIXES:
        return native_yaml.load(path)
    document = read_json(path)
    content = habitat_common.content_files(path, document)
    return [
        episode
        for file, part in [(file, read_json(file)) for file in content] or [(path, document)]
        for episode in parse(_format_of(part, file).reader, part, file)
    ]


def _format_of(document: Any, path: Path) -> Format:
    for module in FORMATS:
        if module.matches(document):
            return module
    raise EpisodeError(
        f"{path}: is of an unknown schema: {_description(document)}",
        "use Habitat's PointNav-v1, ObjectNav-v1, R2R-CE, RxR-CE, MP3D-EQA or Rearrange, RoboTHOR, converted iTHOR "
        "rearrangement, or the runtime's YAML",
    )


def _description(document: Any) -> str:
    if isinstance(document, dict):
        return f"an object with the keys {', '.join(sorted(map(str, document))[:8]) or '(none)'}"
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return f"a list of objects with the keys {', '.join(sorted(map(str, document[0]))[:8])}"
    return f"a {type(document).__name__}"
