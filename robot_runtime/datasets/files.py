"""Files of data sets: episodes of any format read into the same Episode, and written.

JSON formats are those of :mod:`robot_runtime.datasets.formats`; the runtime's own YAML is
:mod:`robot_runtime.datasets.native_yaml`.
"""

from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from robot_runtime.datasets import habitat_common, native_yaml
from robot_runtime.datasets.formats import format_of, usable_formats
from robot_runtime.datasets.io import in_one_list, parse, read_json
from robot_runtime.datasets.streaming import outline, records
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task

_SUFFIXES = (".json", ".json.gz", ".jsonl", ".jsonl.gz", *native_yaml.SUFFIXES)


def load_episodes(path: Path | str) -> list[Episode]:
    """All episodes of a file of any format, or of all files of a folder.

    YAML is recognized by its suffix; JSON, plain or gzipped, by its content.

    Raises:
        EpisodeError: no such file, truncated, not JSON, of an unknown schema, without episodes, or a field is missing
            or wrong; names the file, the episode, the field and the remedy.
    """
    episodes = [episode for file in _files(Path(path)) for episode in _load_file(file)]
    if not episodes:
        raise _none_in(Path(path))
    return episodes


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
        EpisodeError: the file itself cannot be read, or the data that its episodes share; or there are no episodes.
    """
    none = True
    for file in _files(path):
        for episode in _readable_in(file):
            none = False
            yield episode
    if none:
        raise _none_in(path)


def companion_problems(path: Path, ids: Set[str]) -> Iterator[str]:
    """Yield what is wrong with the files next to those of a dataset, as sentences.

    Raises:
        EpisodeError: a companion file cannot be read.
    """
    for file in _files(path):
        if file.suffix not in native_yaml.SUFFIXES:
            for part in habitat_common.content_files(file, outline(file)) or [file]:
                document = outline(part)
                yield from format_of(document, part).companion_problems(part, document, ids)


def save_episodes(path: Path, episodes: Sequence[Episode], task: Task) -> None:
    """Write episodes as YAML if the file's name says so, else in the first JSON format that is for them.

    Raises:
        EpisodeError: the format cannot represent an episode, or the file cannot be written.
    """
    if path.suffix in native_yaml.SUFFIXES:
        native_yaml.save(path, episodes)
        return
    for item in usable_formats():
        if item.save is not None and item.writes(episodes, task):
            item.save(path, episodes, task)
            return
    raise EpisodeError(
        f"{path}: there is no JSON format for episodes of task {task.name!r}", "use a name that ends in .yaml"
    )


def _files(path: Path) -> list[Path]:
    """The file, or the episode files of a folder."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.name.endswith(_SUFFIXES))
    companions = {path for file in files for item in usable_formats() for path in item.companions(file)}
    files = [file for file in files if file not in companions]
    if not files:
        raise EpisodeError(f"{path}: has no {' or '.join(_SUFFIXES)} file", "use a file or folder with episodes")
    return files


def _readable_in(file: Path) -> Iterator[Episode | EpisodeError]:
    """The episodes of one file; see :func:`iter_readable`."""
    if file.suffix in native_yaml.SUFFIXES:
        yield from native_yaml.iter_readable(file)
        return
    head = outline(file)
    content = habitat_common.content_files(file, head)
    for part, document in [(part, outline(part)) for part in content] or [(file, head)]:
        read = format_of(document, part).reader(document, part)
        for index, record in enumerate(records(part, isinstance(document, list))):
            try:
                episode: Episode | EpisodeError = read(index, record)
            except EpisodeError as error:
                episode = error
            yield episode


def _none_in(path: Path) -> EpisodeError:
    """The error for a file or folder without a single episode."""
    folder = (path if path.is_dir() else path.parent) / habitat_common.CONTENT
    if path.suffix in native_yaml.SUFFIXES:
        return EpisodeError(f"{path}: has no episodes", "add at least one to 'episodes'")
    if folder.is_dir():
        return EpisodeError(f"{path}: has no episodes, nor has {folder}", "download the split with its folder again")
    return EpisodeError(
        f"{path}: has no episodes, and there is no folder {folder} with them",
        "download the split's folder content/ too, or use a file with episodes",
    )


def _load_file(path: Path) -> list[Episode]:
    if path.suffix in native_yaml.SUFFIXES:
        return native_yaml.load(path)
    document = in_one_list(read_json(path))
    content = habitat_common.content_files(path, document)
    return [
        episode
        for file, part in [(file, read_json(file)) for file in content] or [(path, document)]
        for episode in parse(format_of(part, file).reader, part, file)
    ]
