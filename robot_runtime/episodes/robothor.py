"""Episodes of the RoboTHOR challenge: one JSON list per scene (robothor-challenge, ``dataset/*/episodes``).

THOR is left-handed and counts degrees clockwise; everything is turned into ROS (``robot_runtime.geometry``). The
agent's ``initial_position.y`` of 0.901 m is the middle of its capsule, not the floor, so ``start_z_m`` is 0.

The files of 2021 name a category and leave the instance open: such episodes have no goals until the scene fills
them in (``tasks.objectnav.resolve_goals``). Those of 2020 name one object and its position.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from robot_runtime.episodes.episode import Episode, Goal
from robot_runtime.episodes.reading import Finite, checked, read_json
from robot_runtime.geometry import SE2, thor_horizon_to_tilt, thor_rotation_to_yaw, thor_to_ros_position


class Position(TypedDict):
    """A point in THOR's frame, metres."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    x: Finite
    y: Finite
    z: Finite


class Record(TypedDict):
    """One episode as the file has it; angles in degrees. ``shortest_path*`` are missing in the test split."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    id: str
    scene: str
    object_type: str
    initial_position: Position
    initial_orientation: Finite
    initial_horizon: NotRequired[Finite]
    shortest_path: NotRequired[list[Position]]
    shortest_path_length: NotRequired[Finite]
    object_id: NotRequired[str]
    target_position: NotRequired[Position]


_SCHEMA = TypeAdapter(list[Record])
_MODELLED = frozenset(Record.__annotations__)


def matches(document: Any) -> bool:
    """Whether a JSON document looks like this format: a list of records with RoboTHOR's fields."""
    return isinstance(document, list) and any(
        isinstance(item, dict) and ("initial_position" in item or "object_type" in item) for item in document
    )


def load(path: Path) -> list[Episode]:
    """All episodes of a file. Raises ``EpisodeError``."""
    return parse(read_json(path), path)


def parse(document: Any, path: Path) -> list[Episode]:
    """All episodes of a document read from ``path``. Raises ``EpisodeError``."""
    return [_episode(record) for record in checked(document, _SCHEMA, path, id_field="id")]


def _episode(record: Record) -> Episode:
    x_m, y_m, _ = _ros(record["initial_position"])
    horizon_deg = record.get("initial_horizon")
    extra: dict[str, Any] = {name: value for name, value in record.items() if name not in _MODELLED}
    return Episode(
        id=record["id"],
        scene=record["scene"],
        start=SE2(x_m, y_m, thor_rotation_to_yaw(record["initial_orientation"])),
        goals=_goals(record),
        category=record["object_type"],
        start_tilt_rad=None if horizon_deg is None else thor_horizon_to_tilt(horizon_deg),
        shortest_path_m=record.get("shortest_path_length"),
        shortest_path=tuple(_ros(point)[:2] for point in record.get("shortest_path", ())),
        info=extra,
    )


def _goals(record: Record) -> tuple[Goal, ...]:
    if "target_position" not in record:
        return ()
    return (Goal(*_ros(record["target_position"]), object_id=record.get("object_id")),)


def _ros(point: Position) -> tuple[float, float, float]:
    return thor_to_ros_position(point["x"], point["y"], point["z"])
