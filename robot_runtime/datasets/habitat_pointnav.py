"""Habitat's PointNav-v1: ``{split}/{split}.json.gz`` with one or more goal positions per episode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from robot_runtime.common.geometry import ros_to_habitat_position
from robot_runtime.datasets import habitat_common
from robot_runtime.datasets.io import OPEN, Reader, Vector3, checked, episode_at, write_json
from robot_runtime.tasks.episode import Episode, Goal


class GoalRecord(TypedDict):
    """A goal; ``radius`` and whatever else it has is kept, and ignored as habitat-lab does."""

    __pydantic_config__ = OPEN  # type: ignore[misc]

    position: Vector3


class EpisodeRecord(habitat_common.EpisodeRecord):
    """One episode as the file has it."""

    goals: Annotated[list[GoalRecord], Field(min_length=1)]


_SCHEMA = TypeAdapter(EpisodeRecord)
_MODELED = frozenset({"episode_id", "scene_id", "start_position"})
_OTHER_TASKS = habitat_common.OTHER_TASKS | {"object_category"}


def matches(document: Any) -> bool:
    """Whether a JSON document looks like this format: episodes, without the marks of other Habitat tasks."""
    if not (isinstance(document, dict) and isinstance(document.get("episodes"), list)):
        return False
    first = document["episodes"][:1]
    return "goals_by_category" not in document and all(
        isinstance(episode, dict) and not _OTHER_TASKS & episode.keys() for episode in first
    )


def load(path: Path) -> list[Episode]:
    """All episodes of a split file, and of ``content/`` beside it where the split leaves them there.

    Raises:
        EpisodeError: names file, episode, field and remedy.
    """
    return habitat_common.load(path, reader)


def parse(document: Any, path: Path) -> list[Episode]:
    """All episodes of one JSON document read from ``path``. Raises ``EpisodeError``."""
    return habitat_common.parse(document, path, reader)


def reader(document: Any, path: Path) -> Reader:
    """What reads the episodes of a document, given the document or its outline."""
    rest = habitat_common.unmodeled(document, ("episodes",))

    def read(index: int, item: Any) -> Episode:
        record = checked(item, _SCHEMA, path, episode_at(index, item))
        info = habitat_common.unmodeled(record, _MODELED)
        info["goals"] = [habitat_common.unmodeled(goal, ("position",)) for goal in record["goals"]]
        if rest:
            info["dataset"] = rest
        return Episode(
            **habitat_common.from_record(record, path, index),
            goals=tuple(Goal(*habitat_common.to_ros(goal["position"])) for goal in record["goals"]),
            info=info,
        )

    return read


def save(path: Path, episodes: Sequence[Episode]) -> None:
    """Write one split file that habitat-lab reads; gzipped if the name ends in ``.gz``. Raises ``EpisodeError``."""
    rest = episodes[0].info.get("dataset", {}) if episodes else {}
    write_json(path, {"episodes": [habitat_common.to_record(episode, _goals(episode)) for episode in episodes], **rest})


def _goals(episode: Episode) -> list[dict[str, Any]]:
    extras = habitat_common.goal_extras(episode, {"radius": None})
    return [
        {"position": list(ros_to_habitat_position(goal.x_m, goal.y_m, goal.z_m)), **extra}
        for goal, extra in zip(episode.goals, extras, strict=True)
    ]
