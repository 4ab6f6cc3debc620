"""Episodes of the RoboTHOR challenge: one JSON list per scene (robothor-challenge, ``dataset/*/episodes``).

THOR is left-handed and measures degrees clockwise; all poses are converted to ROS (``robot_runtime.common.geometry``).
The agent's ``initial_position.y`` of 0.901 m is the center of its capsule, not the floor, so ``start_z_m`` is 0.

The files of 2021 name a category without an instance: such episodes have no goals until the scene provides them
(``ObjectNav.resolve_goals``). Those of 2020 name one object and its position.

``Episode.info`` has the fields that writing needs (angles in degrees, and the heights of the start and the path) and
every field that the runtime does not model.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import NotRequired

from robot_runtime.common.geometry import (
    SE2,
    ros_to_thor_position,
    thor_horizon_to_tilt,
    thor_rotation_to_yaw,
    thor_to_ros_position,
    tilt_to_thor_horizon_deg,
    yaw_to_thor_rotation_deg,
)
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import Finite, Id, OpenDict, Position, Reader, checked, episode_at, write_json
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode, Goal

AGENT_HEIGHT_M = 0.9009996652603149
"""The ``initial_position.y`` of every published episode: the center of the agent's capsule."""


class Record(OpenDict):
    """One episode in the file; angles in degrees. ``shortest_path*`` are missing in the test split."""

    id: Id
    scene: str
    object_type: str
    initial_position: Position
    initial_orientation: Finite
    initial_horizon: NotRequired[Finite]
    shortest_path: NotRequired[list[Position]]
    shortest_path_length: NotRequired[Finite]
    object_id: NotRequired[str]
    target_position: NotRequired[Position]


Conversion = Callable[[float], float]

_SCHEMA = TypeAdapter(Record)
_ANGLES = ("initial_orientation", "initial_horizon")
_KEPT = frozenset({*_ANGLES, "id", "start_y", "path_y"})
_MODELED = frozenset(Record.__annotations__)


def matches(document: Any) -> bool:
    """Whether a JSON document has this format: a list of records with RoboTHOR's fields."""
    return isinstance(document, list) and any(
        isinstance(item, dict) and ("initial_position" in item or "object_type" in item) for item in document
    )


def reader(document: Any, path: Path) -> Reader:
    """The reader of a document's episodes."""

    def read(index: int, item: Any) -> Episode:
        return _episode(checked(item, _SCHEMA, path, episode_at(index, item, "id")))

    return read


def save(path: Path, episodes: Sequence[Episode]) -> None:
    """Write one list, in the format of 2020 for episodes with a goal and of 2021 for those without.

    Raises:
        EpisodeError: an episode without category or with several goals, or the file cannot be written.
    """
    write_json(path, [_record(episode, path) for episode in episodes])


def _episode(record: Record) -> Episode:
    x_m, y_m, _ = _ros(record["initial_position"])
    info: dict[str, Any] = {name: value for name, value in record.items() if name not in _MODELED}
    info |= {name: value for name, value in record.items() if name in _ANGLES}
    if not isinstance(record["id"], str):
        info["id"] = record["id"]
    info["start_y"] = record["initial_position"]["y"]
    if "shortest_path" in record:
        info["path_y"] = [point["y"] for point in record["shortest_path"]]
    horizon_deg = record.get("initial_horizon")
    return Episode(
        id=str(record["id"]),
        scene=record["scene"],
        start=SE2(x_m, y_m, thor_rotation_to_yaw(record["initial_orientation"])),
        goals=_goals(record),
        category=record["object_type"],
        start_tilt_rad=None if horizon_deg is None else thor_horizon_to_tilt(horizon_deg),
        shortest_path_m=record.get("shortest_path_length"),
        shortest_path=tuple(_ros(point)[:2] for point in record.get("shortest_path", ())),
        info=info,
    )


def _goals(record: Record) -> tuple[Goal, ...]:
    if "target_position" not in record:
        return ()
    return (Goal(*_ros(record["target_position"]), object_id=record.get("object_id")),)


def _ros(point: Position) -> tuple[float, float, float]:
    return thor_to_ros_position(point["x"], point["y"], point["z"])


def _record(episode: Episode, path: Path) -> dict[str, Any]:
    if episode.category is None or len(episode.goals) > 1:
        problem = "has no goal category" if episode.category is None else f"has {len(episode.goals)} goals"
        raise EpisodeError(
            f"{path}: episode {episode.id!r}: {problem}, but RoboTHOR's format needs a category and at most one goal",
            "write it in Habitat's format or as YAML",
        )
    info, start = episode.info, episode.start
    record: dict[str, Any] = {
        "id": info["id"] if str(info.get("id")) == episode.id else episode.id,
        "scene": episode.scene,
        "object_type": episode.category,
        "initial_position": _thor(start.x_m, start.y_m, info.get("start_y", AGENT_HEIGHT_M)),
        "initial_orientation": _degrees(
            info.get("initial_orientation"), start.yaw_rad, thor_rotation_to_yaw, yaw_to_thor_rotation_deg
        ),
    }
    if episode.start_tilt_rad is not None:
        record["initial_horizon"] = _degrees(
            info.get("initial_horizon"), episode.start_tilt_rad, thor_horizon_to_tilt, tilt_to_thor_horizon_deg
        )
    heights = info.get("path_y", ())
    if episode.shortest_path or "path_y" in info:
        known = len(heights) == len(episode.shortest_path)
        record["shortest_path"] = [
            _thor(x_m, y_m, heights[i] if known else 0.0) for i, (x_m, y_m) in enumerate(episode.shortest_path)
        ]
    if episode.shortest_path_m is not None:
        record["shortest_path_length"] = episode.shortest_path_m
    for goal in episode.goals:
        record["target_position"] = _thor(goal.x_m, goal.y_m, goal.z_m)
        if goal.object_id is not None:
            record["object_id"] = goal.object_id
    return record | {name: value for name, value in info.items() if name not in _KEPT}


def _thor(x_m: float, y_m: float, z_m: float) -> dict[str, float]:
    return dict(zip("xyz", ros_to_thor_position(x_m, y_m, z_m), strict=True))


def _degrees(original: float | None, angle_rad: float, read: Conversion, write: Conversion) -> float:
    """The file's own number while it still equals the episode's angle."""
    return original if original is not None and read(original) == angle_rad else write(angle_rad)


FORMAT = EpisodeFormat(
    title="RoboTHOR",
    kind="objectnav",
    matches=matches,
    reader=reader,
    save=lambda path, episodes, _: save(path, episodes),
    rank=10,
)
