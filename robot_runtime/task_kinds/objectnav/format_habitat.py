"""Habitat's ObjectNav-v1: episodes name a category; its goals, with view points, are stored per scene and category.

The document's ``goals_by_category`` has the key ``<file name of scene_id>_<object_category>``; episodes have
``"goals": []`` and are filled from it. Goals that no episode uses are dropped.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from typing_extensions import NotRequired

from robot_runtime.datasets import habitat_common
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import OpenDict, Reader, Vector3, checked, episode_at, parse, read_json, write_json
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task


class ViewPoint(OpenDict):
    """A pose from which the object counts as reached, and other fields such as ``iou``."""

    agent_state: habitat_common.AgentState


class GoalRecord(OpenDict):
    """An instance of a category."""

    position: Vector3
    object_id: str | int | None
    view_points: list[ViewPoint]


class EpisodeRecord(habitat_common.EpisodeRecord):
    """One episode in the file. ``goals`` is empty unless the document has no ``goals_by_category``."""

    object_category: str
    goals: list[GoalRecord]


class Head(OpenDict):
    """Fields of the file besides its episodes."""

    goals_by_category: NotRequired[dict[str, Annotated[list[GoalRecord], Field(min_length=1)]]]


_SCHEMA = TypeAdapter(EpisodeRecord)
_HEAD_SCHEMA = TypeAdapter(Head)
_MODELED = frozenset({"episode_id", "scene_id", "start_position", "object_category"})
_GoalSet = tuple[tuple[Goal, ...], list[dict[str, Any]]]


def matches(document: Any) -> bool:
    """Whether a JSON document has this format."""
    fields = habitat_common.first_fields(document)
    if fields is None or habitat_common.OTHER_TASKS & fields:
        return False
    return bool({"goals_by_category", "category_to_task_category_id"} & document.keys()) or "object_category" in fields


def reader(document: Any, path: Path) -> Reader:
    """The reader of a document's episodes, given the document or its outline. Raises ``EpisodeError``."""
    head = checked(habitat_common.unmodeled(document, ("episodes",)), _HEAD_SCHEMA, path)
    rest = habitat_common.unmodeled(head, ("goals_by_category",))
    goal_sets = {
        key: _goal_set(records, f"{path}: goals_by_category {key!r}")
        for key, records in head.get("goals_by_category", {}).items()
    }

    def read(index: int, item: Any) -> Episode:
        record = checked(item, _SCHEMA, path, episode_at(index, item))
        return _episode(record, goal_sets, rest, path, index)

    return read


def unused_goals(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The goals of a file that none of its episodes uses, as :func:`save` takes them. Raises ``EpisodeError``."""
    document = read_json(path)
    used = {_goals_key(episode) for episode in parse(reader, document, path)}
    return {key: goals for key, goals in document.get("goals_by_category", {}).items() if key not in used}


def save(
    path: Path,
    episodes: Sequence[Episode],
    category_ids: Mapping[str, int] | None = None,
    more_goals: Mapping[str, list[dict[str, Any]]] | None = None,
) -> None:
    """Write one split file for habitat-lab; gzipped if the name ends in ``.gz``.

    Args:
        path: path of the file.
        episodes: episodes to write.
        category_ids: the task's id of each category; may be omitted for episodes that were read from such a file.
        more_goals: further entries of ``goals_by_category``, see :func:`unused_goals`.

    Raises:
        EpisodeError: an episode without category, two of the same scene and category with different goals, no
            ``category_ids`` where they are needed, or the file cannot be written.
    """
    goals_by_category: dict[str, list[dict[str, Any]]] = {}
    records = []
    for episode in episodes:
        key, goals = _goals_key(episode), _goal_records(episode)
        if goals_by_category.setdefault(key, goals) != goals:
            raise EpisodeError(
                f"{path}: episode {episode.id!r}: its goals differ from those of another episode of {key!r}",
                "write them to files of their own: ObjectNav-v1 has one set of goals per scene and category",
            )
        record = habitat_common.to_record(episode, [])
        records.append({**record, "object_category": episode.category})
    rest = episodes[0].info.get("dataset") if episodes else None
    if rest is None and category_ids is None:
        raise EpisodeError(f"{path}: the categories have no ids", "pass the task's ids as 'category_ids'")
    ids = dict(category_ids or {})
    own = {"category_to_task_category_id": ids, "category_to_scene_annotation_category_id": ids}
    write_json(
        path, {"episodes": records, "goals_by_category": goals_by_category | dict(more_goals or {}), **(rest or own)}
    )


def _episode(
    record: EpisodeRecord, goal_sets: Mapping[str, _GoalSet], rest: dict[str, Any], path: Path, index: int
) -> Episode:
    where = f"{path}: episode {index} (id {record['episode_id']!r})"
    if record["goals"]:
        goals, extras = _goal_set(record["goals"], where)
    else:
        key = f"{Path(record['scene_id']).name}_{record['object_category']}"
        if key not in goal_sets:
            raise EpisodeError(
                f"{where}: field 'object_category': goals_by_category has no {key!r}",
                "add its goals there, or download the file again",
            )
        goals, extras = goal_sets[key]
    info = {**habitat_common.unmodeled(record, _MODELED), "goals": extras, "dataset": rest}
    return Episode(
        **habitat_common.from_record(record, path, index), goals=goals, category=record["object_category"], info=info
    )


def _goal_set(records: Sequence[GoalRecord], where: str) -> _GoalSet:
    """Goals and their other fields; shared by all episodes of a scene and category."""
    goals = []
    for index, record in enumerate(records):
        object_id = record["object_id"]
        x_m, y_m, z_m = habitat_common.to_ros(record["position"])
        states = [view["agent_state"] for view in record["view_points"]]
        place = partial("{}: goal {}: view point {}: field 'rotation'".format, where, index)
        poses = habitat_common.agent_poses(states, z_m, place)
        goals.append(Goal(x_m, y_m, z_m, None if object_id is None else str(object_id), poses))
    return tuple(goals), [habitat_common.unmodeled(record, ("position",)) for record in records]


def _goals_key(episode: Episode) -> str:
    if episode.category is None:
        raise EpisodeError(f"episode {episode.id!r}: has no goal category", "write it with habitat_pointnav")
    return f"{Path(episode.scene).name}_{episode.category}"


def _goal_records(episode: Episode) -> list[dict[str, Any]]:
    kept = habitat_common.goal_extras(episode, {})
    extras = [extra or _goal_extra(episode, goal) for goal, extra in zip(episode.goals, kept, strict=True)]
    return habitat_common.goal_records(episode, extras)


def _goal_extra(episode: Episode, goal: Goal) -> dict[str, Any]:
    states = [habitat_common.agent_state(pose, episode.start_z_m) for pose in goal.view_points]
    return {
        "object_id": goal.object_id,
        "object_name": goal.object_id,
        "object_category": episode.category,
        "radius": None,
        "room_id": None,
        "room_name": None,
        "view_points": [{"agent_state": state, "iou": None} for state in states],
    }


def _save(path: Path, episodes: Sequence[Episode], task: Task) -> None:
    save(path, episodes, {name: category.id for name, category in task.categories.items()})


FORMAT = EpisodeFormat(
    title="ObjectNav-v1",
    kind="objectnav",
    matches=matches,
    reader=reader,
    save=_save,
    # Habitat has no schema for rooms: for AreaGoal, "object_category" is the kind of room.
    writes=lambda episodes, task: task.kind in ("objectnav", "areagoal"),
    rank=60,
)
