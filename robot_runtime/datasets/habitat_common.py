"""Common parts of habitat-lab's PointNav-v1 and ObjectNav-v1 files.

A dataset is a JSON document with ``episodes``. A split file may leave them to ``content/<scene>.json.gz`` next to it.
Positions are in Habitat's frame (y up, agent facing -z), rotations quaternions x, y, z, w; both are converted to ROS.
Fields that an :class:`Episode` does not model are stored in ``Episode.info`` and written back, so that reading and
writing is lossless:

=====================  ===============================================================================================
``Episode.info`` key   content
=====================  ===============================================================================================
``episode_id``         the original id, if it is a number
``start_rotation``     the original quaternion; written back while it still has the episode's heading
``goals``              the goals' other fields (``radius``, ...), one dict per goal
``dataset``            the document's other fields (``category_to_task_category_id``, ...)
any other              the record's field of that name (``info``, ``shortest_paths``, ``start_room``, ...)
=====================  ===============================================================================================

Source: habitat-lab, ``datasets/pointnav/pointnav_dataset.py``, ``datasets/object_nav/object_nav_dataset.py``,
``tasks/nav/nav.py``.
"""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from typing import Any

from typing_extensions import NotRequired, TypedDict

from robot_runtime.common.geometry import (
    SE2,
    habitat_quaternion_to_yaw,
    habitat_to_ros_position,
    ros_to_habitat_position,
    yaw_to_habitat_quaternion,
)
from robot_runtime.datasets.io import Finite, Id, OpenDict, Quaternion, Vector3
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.floors import STEP_M, STOREY_M


class AgentState(OpenDict):
    """A pose of the agent."""

    position: Vector3
    rotation: Quaternion


class InfoRecord(OpenDict):
    """The free part of an episode."""

    geodesic_distance: NotRequired[Finite | None]


class EpisodeRecord(OpenDict):
    """Fields that PointNav and ObjectNav episodes share."""

    episode_id: Id
    scene_id: str
    start_position: Vector3
    start_rotation: Quaternion
    info: NotRequired[InfoRecord | None]
    shortest_paths: NotRequired[list[list[Any]] | None]


CONTENT = "content"
"""Folder of a split's episodes by scene, next to the split's file."""

UPRIGHT_RAD = math.radians(1)
"""Largest angle of a start's vertical axis from the vertical: an agent stands, whatever its heading."""

OTHER_TASKS = frozenset({"instruction", "question", "goal_image_id", "ao_states"})
"""Fields of other Habitat tasks only: VLN, EQA, InstanceImageNav, Rearrange."""


def first_fields(document: Any) -> Set[str] | None:
    """The names of the first episode's fields, none without an episode; None if there are no episodes in a list."""
    episodes = document.get("episodes") if isinstance(document, dict) else None
    first = (episodes or [{}])[0] if isinstance(episodes, list) else None
    return first.keys() if isinstance(first, dict) else None


def first_has(document: Any, field: str) -> bool:
    """Whether a document's first episode has a field."""
    return field in (first_fields(document) or ())


class _Fields(TypedDict):
    id: str
    scene: str
    start: SE2
    start_z_m: float
    shortest_path_m: float | None
    shortest_path: tuple[tuple[float, float], ...]


def content_files(path: Path, document: Any) -> list[Path]:
    """The files in ``content/`` next to a split file whose document leaves the episodes to them; else none."""
    if isinstance(document, dict) and document.get("episodes") == []:
        return sorted((path.parent / CONTENT).glob("*.json.gz"))
    return []


def to_ros(position: list[float]) -> tuple[float, float, float]:
    """A position of the file in ``map``."""
    return habitat_to_ros_position(position[0], position[1], position[2])


def to_heading(rotation: list[float], where: Callable[[], str]) -> float:
    """The heading in ``map`` of a rotation of the file. Raises ``EpisodeError`` naming ``where()``."""
    try:
        yaw_rad = habitat_quaternion_to_yaw(*rotation)
    except ValueError as error:
        raise EpisodeError(f"{where()}: {error}", "give it a unit quaternion x, y, z, w") from error
    x, y, z, w = rotation
    tilt_rad = 2 * math.atan2(math.hypot(x, z), math.hypot(y, w))
    if tilt_rad > UPRIGHT_RAD:
        raise EpisodeError(
            f"{where()}: {rotation} is not a rotation about the vertical: it tilts by "
            f"{math.degrees(tilt_rad):.1f}°, as one in the order w, x, y, z or with z up does",
            "write it as x, y, z, w with y up",
        )
    return yaw_rad


def from_record(record: Mapping[str, Any], path: Path, index: int) -> _Fields:
    """The arguments of :class:`Episode` that PointNav and ObjectNav share."""
    x_m, y_m, z_m = to_ros(record["start_position"])

    def where() -> str:
        return f"{path}: episode {index} (id {record['episode_id']!r}): field 'start_rotation'"

    return {
        "id": str(record["episode_id"]),
        "scene": record["scene_id"],
        "start": SE2(x_m, y_m, to_heading(record["start_rotation"], where)),
        "start_z_m": z_m,
        "shortest_path_m": (record.get("info") or {}).get("geodesic_distance"),
        "shortest_path": _path_points(record.get("shortest_paths")),
    }


def to_record(episode: Episode, goals: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of an episode, with exactly the original fields if it was read from Habitat."""
    extras = {name: value for name, value in episode.info.items() if name not in ("start_rotation", "goals", "dataset")}
    record: dict[str, Any] = {
        "episode_id": episode.id,
        "scene_id": episode.scene,
        "start_position": list(ros_to_habitat_position(episode.start.x_m, episode.start.y_m, episode.start_z_m)),
        "start_rotation": _rotation(episode.info.get("start_rotation"), episode.start.yaw_rad),
    }
    if not from_habitat(episode):
        record |= {"info": None, "goals": goals, "shortest_paths": _shortest_paths(episode), "start_room": None}
    elif "goals" in episode.info:
        record["goals"] = goals
    if str(extras.get("episode_id")) != episode.id:
        extras.pop("episode_id", None)
    record |= extras
    if episode.shortest_path_m is not None:
        record["info"] = {**(record["info"] or {}), "geodesic_distance": episode.shortest_path_m}
    return record


def from_habitat(episode: Episode) -> bool:
    """Whether the episode was read from one of Habitat's files, so that ``Episode.info`` is its record."""
    return "start_rotation" in episode.info


def info_of(record: Mapping[str, Any], modeled: Iterable[str], rest: Mapping[str, Any]) -> dict[str, Any]:
    """``Episode.info`` of a record: its other fields, its goals' other fields, and the document's other fields."""
    info = unmodeled(record, modeled)
    if not isinstance(record["episode_id"], str):
        info["episode_id"] = record["episode_id"]
    if record.get("goals") is not None:
        info["goals"] = [unmodeled(goal, ("position",)) for goal in record["goals"]]
    return {**info, "dataset": rest} if rest else info


def goal_records(episode: Episode, extras: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records of an episode's goals, each with its other fields."""
    return [
        {"position": list(ros_to_habitat_position(goal.x_m, goal.y_m, goal.z_m)), **extra}
        for goal, extra in zip(episode.goals, extras, strict=True)
    ]


def agent_poses(states: Iterable[AgentState], object_z_m: float, where: Callable[[int], str]) -> tuple[SE2, ...]:
    """The view points of an object in ``map``, without those on another floor than the object's.

    Args:
        states: view points of the file.
        object_z_m: height of the object's center in ``map``, meters.
        where: function from a view point's index to its place, for messages.

    Raises:
        EpisodeError: a rotation is none about the vertical.
    """
    poses = []
    for index, state in enumerate(states):
        x_m, y_m, z_m = to_ros(state["position"])
        if -STEP_M < object_z_m - z_m < STOREY_M:
            poses.append(SE2(x_m, y_m, to_heading(state["rotation"], functools.partial(where, index))))
    return tuple(poses)


def agent_state(pose: SE2, floor_m: float) -> dict[str, list[float]]:
    """The reverse of :func:`agent_poses` for one, at the height of the floor."""
    return {
        "position": list(ros_to_habitat_position(pose.x_m, pose.y_m, floor_m)),
        "rotation": list(yaw_to_habitat_quaternion(pose.yaw_rad)),
    }


def goal_extras(episode: Episode, default: dict[str, Any]) -> list[dict[str, Any]]:
    """The other fields of each goal, as read; ``default`` for each goal if the goals were replaced since."""
    extras: list[dict[str, Any]] = episode.info.get("goals") or []
    return extras if len(extras) == len(episode.goals) else [default] * len(episode.goals)


def unmodeled(record: Mapping[str, Any], modeled: Iterable[str]) -> dict[str, Any]:
    """The fields of a record that the runtime does not model."""
    return {name: value for name, value in record.items() if name not in modeled}


def _rotation(original: list[float] | None, yaw_rad: float) -> list[float]:
    if original is not None and habitat_quaternion_to_yaw(*original) == yaw_rad:
        return original
    return list(yaw_to_habitat_quaternion(yaw_rad))


def _path_points(paths: list[list[Any]] | None) -> tuple[tuple[float, float], ...]:
    """The points of the first path, if it has positions: many datasets have only its actions."""
    points: list[tuple[float, float]] = []
    for step in paths[0] if paths else ():
        position = step.get("position") if isinstance(step, dict) else None
        if not (isinstance(position, list) and len(position) == 3 and all(map(_is_finite, position))):
            return ()
        points.append(to_ros(position)[:2])
    return tuple(points)


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _shortest_paths(episode: Episode) -> list[list[dict[str, Any]]] | None:
    """The path as habitat-lab's ``ShortestPathPoint`` list, without rotations and actions."""
    if not episode.shortest_path:
        return None
    positions = [ros_to_habitat_position(x_m, y_m, episode.start_z_m) for x_m, y_m in episode.shortest_path]
    return [[{"position": list(position), "rotation": None, "action": None} for position in positions]]
