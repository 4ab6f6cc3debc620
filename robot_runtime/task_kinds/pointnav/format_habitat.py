"""Habitat's PointNav-v1: ``{split}/{split}.json.gz`` with one or more goal positions per episode."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from robot_runtime.datasets import habitat_common
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import OpenDict, Reader, Vector3, checked, episode_at, write_json
from robot_runtime.tasks.episode import Episode, Goal


class GoalRecord(OpenDict):
    """A goal; ``radius`` and other fields are preserved, and ignored as in habitat-lab."""

    position: Vector3


class EpisodeRecord(habitat_common.EpisodeRecord):
    """One episode in the file."""

    goals: Annotated[list[GoalRecord], Field(min_length=1)]


_SCHEMA = TypeAdapter(EpisodeRecord)
_MODELED = frozenset({"episode_id", "scene_id", "start_position"})
_OTHER_TASKS = habitat_common.OTHER_TASKS | {"object_category"}


def matches(document: Any) -> bool:
    """Whether a JSON document has this format: episodes without the fields of other Habitat tasks."""
    fields = habitat_common.first_fields(document)
    return fields is not None and "goals_by_category" not in document and not _OTHER_TASKS & fields


def reader(document: Any, path: Path) -> Reader:
    """The reader of a document's episodes, given the document or its outline."""
    rest = habitat_common.unmodeled(document, ("episodes",))

    def read(index: int, item: Any) -> Episode:
        record = checked(item, _SCHEMA, path, episode_at(index, item))
        return Episode(
            **habitat_common.from_record(record, path, index),
            goals=tuple(Goal(*habitat_common.to_ros(goal["position"])) for goal in record["goals"]),
            info=habitat_common.info_of(record, _MODELED, rest),
        )

    return read


def save(path: Path, episodes: Sequence[Episode]) -> None:
    """Write one split file for habitat-lab; gzipped if the name ends in ``.gz``. Raises ``EpisodeError``."""
    rest = episodes[0].info.get("dataset", {}) if episodes else {}
    write_json(path, {"episodes": [_record(episode) for episode in episodes], **rest})


def _record(episode: Episode) -> dict[str, Any]:
    extras = habitat_common.goal_extras(episode, {"radius": None})
    return habitat_common.to_record(episode, habitat_common.goal_records(episode, extras))


FORMAT = EpisodeFormat(
    title="PointNav-v1",
    kind="pointnav",
    matches=matches,
    reader=reader,
    save=lambda path, episodes, _: save(path, episodes),
    writes=lambda episodes, task: True,
    rank=70,
)
"""The most general format: places are what all episodes without a format of their own have."""
