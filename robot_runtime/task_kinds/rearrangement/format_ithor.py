"""Room rearrangement in iTHOR (ai2thor-rearrangement, data of 2021 to 2023), converted from pickle.

The published ``val.pkl.gz`` is a pickle of ``{scene: [episode]}``. ``robot-runtime episodes convert`` converts it in a
sandbox (:mod:`robot_runtime.task_kinds.rearrangement.convert_ithor`) to the JSON of this module: ``format``, ``stage``
and ``episodes``, each with the original fields and ``scene``, ``index`` and ``unique_id`` (``scene__stage__index``, the
challenge's key for scores).

Every pickupable object has a pose at the start of the unshuffle phase and one to restore; they are equal, or nearly so,
for objects that did not move. Doors and drawers are objects with an openness and without rotation; their position is in
their id. Rotations are Unity's Euler angles, about z, then x, then y of its left-handed frame. An upright object
without rotation has the identity rotation in ``map``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter

from robot_runtime.common.geometry import SE2, thor_rotation_to_yaw, thor_to_ros_position
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import Finite, OpenDict, Position, Reader, checked, episode_at, write_json
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode, RearrangedObject

MARK = "ithor-rearrangement-1"


class PoseRecord(OpenDict):
    """Pose of an object; ``rotation`` in degrees."""

    name: str
    position: Position
    rotation: Position


class OpenRecord(OpenDict):
    """Openness of an object at the start and at the end, 0 to 1. ``objectId`` is ``Type|+x|+y|+z``."""

    name: str
    objectId: str  # noqa: N815 (of the file)
    start_openness: Finite
    target_openness: Finite


class Record(OpenDict):
    """One episode; other original fields are preserved."""

    unique_id: str
    scene: str
    index: int
    agent_position: Position
    agent_rotation: Finite
    openable_data: list[OpenRecord]
    starting_poses: list[PoseRecord]
    target_poses: list[PoseRecord]


class Head(OpenDict):
    """Fields of the file besides its episodes."""

    format: Literal["ithor-rearrangement-1"]
    stage: str


_SCHEMA = TypeAdapter(Record)
_HEAD_SCHEMA = TypeAdapter(Head)
_MODELED = frozenset({"unique_id", "scene"})
_TO_ROS = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def matches(document: Any) -> bool:
    """Whether a JSON document has this format."""
    if not (isinstance(document, dict) and isinstance(document.get("episodes"), list)):
        return False
    return str(document.get("format")).startswith("ithor-rearrangement")


def reader(document: Any, path: Path) -> Reader:
    """The reader of a document's episodes, given the document or its outline. Raises ``EpisodeError``."""
    head = checked({name: value for name, value in document.items() if name != "episodes"}, _HEAD_SCHEMA, path)

    def read(index: int, item: Any) -> Episode:
        where = episode_at(index, item, "unique_id")
        return _episode(checked(item, _SCHEMA, path, where), head["stage"], f"{path}: {where}")

    return read


def save(path: Path, episodes: Sequence[Episode]) -> None:
    """Write episodes that were read from such a file.

    Raises:
        EpisodeError: an episode has another origin, or the file cannot be written.
    """
    for episode in episodes:
        if "starting_poses" not in episode.info:
            raise EpisodeError(
                f"{path}: episode {episode.id!r}: is not from iTHOR's rearrangement",
                "write it as YAML, or in Habitat's form",
            )
    records = [
        {
            "unique_id": episode.id,
            "scene": episode.scene,
            **{name: value for name, value in episode.info.items() if name != "stage"},
        }
        for episode in episodes
    ]
    stage = episodes[0].info["stage"] if episodes else ""
    write_json(path, {"format": MARK, "stage": stage, "episodes": records})


def from_pickled(scenes: Mapping[str, Sequence[Mapping[str, Any]]], stage: str) -> dict[str, Any]:
    """The document of a published pickle's content: ``{scene: [episode]}``."""
    episodes = [
        {**record, "unique_id": f"{scene}__{stage}__{index}", "scene": scene, "index": index}
        for scene, records in scenes.items()
        for index, record in enumerate(records)
    ]
    return {"format": MARK, "stage": stage, "episodes": episodes}


def _episode(record: Record, stage: str, where: str) -> Episode:
    position = record["agent_position"]
    x_m, y_m, _ = thor_to_ros_position(position["x"], position["y"], position["z"])
    info = {name: value for name, value in record.items() if name not in _MODELED}
    return Episode(
        id=record["unique_id"],
        scene=record["scene"],
        start=SE2(x_m, y_m, thor_rotation_to_yaw(record["agent_rotation"])),
        goals=(),
        info={**info, "stage": stage},
        details=Layout(_objects(record, where)),
    )


def _objects(record: Record, where: str) -> tuple[RearrangedObject, ...]:
    for field in ("starting_poses", "target_poses", "openable_data"):
        names = [item["name"] for item in record[field]]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise EpisodeError(
                f"{where}field {field!r}: has two objects {repeated[0]!r:.100}", "give every object a name of its own"
            )
    openness = {item["name"]: item for item in record["openable_data"]}
    starts, targets = _poses(record["starting_poses"]), _poses(record["target_poses"])
    moved = [
        RearrangedObject(
            id=name,
            start=_open(start, openness.get(name), "start_openness"),
            goal=_open(targets[name], openness.get(name), "target_openness") if name in targets else None,
            category=name.split("_")[0],
        )
        for name, start in starts.items()
    ]
    fixed = [item for name, item in openness.items() if name not in starts]
    return (*moved, *(_openable(item, where) for item in fixed))


def _poses(records: Sequence[PoseRecord]) -> dict[str, ObjectPose]:
    from scipy.spatial.transform import Rotation  # slow import (0.3 s) that no other format needs

    if not records:
        return {}
    angles_deg = [[record["rotation"][axis] for axis in ("y", "x", "z")] for record in records]
    turns = _TO_ROS @ Rotation.from_euler("YXZ", angles_deg, degrees=True).as_matrix() @ _TO_ROS.T
    quaternions = Rotation.from_matrix(turns).as_quat().tolist()
    return {
        record["name"]: ObjectPose(
            thor_to_ros_position(record["position"]["x"], record["position"]["y"], record["position"]["z"]),
            (w, x, y, z),
        )
        for record, (x, y, z, w) in zip(records, quaternions, strict=True)
    }


def _open(pose: ObjectPose, item: OpenRecord | None, field: Literal["start_openness", "target_openness"]) -> ObjectPose:
    return pose if item is None else ObjectPose(pose.position, pose.quaternion, item[field])


def _openable(item: OpenRecord, where: str) -> RearrangedObject:
    kind, *place = item["objectId"].split("|")
    try:
        x, y, z = (float(number) for number in place[:3])
    except ValueError as error:
        raise EpisodeError(
            f"{where}field 'openable_data': {item['objectId']!r:.60} is not Type|x|y|z", "download the file again"
        ) from error
    position = thor_to_ros_position(x, y, z)
    return RearrangedObject(
        id=item["name"],
        start=ObjectPose(position, openness=item["start_openness"]),
        goal=ObjectPose(position, openness=item["target_openness"]),
        category=kind,
    )


FORMAT = EpisodeFormat(
    title="converted iTHOR rearrangement",
    kind="rearrangement",
    matches=matches,
    reader=reader,
    save=lambda path, episodes, _: save(path, episodes),
    rank=15,
)
