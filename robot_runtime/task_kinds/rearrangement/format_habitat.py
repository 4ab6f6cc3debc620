"""Habitat's ``RearrangeDataset-v0``: rigid objects to add to the scene, and their goal poses.

``rigid_objs`` lists ``[configuration file, 4 x 4 transform]``; habitat-lab names the n-th object of a file
``<name of the file>_:000n``, and ``targets`` has the goal transform of some of them by that name. Objects without one
must stay. Joint states (``ao_states``), markers and receptacles are stored in ``Episode.info``, see
:mod:`robot_runtime.datasets.habitat_common`.

Frames of objects are rotated like the scene's: an object that stands upright in Habitat has the identity rotation.

Source: habitat-lab, ``datasets/rearrange/rearrange_dataset.py``, ``tasks/rearrange/rearrange_sim.py``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter
from typing_extensions import NotRequired

from robot_runtime.common.geometry import ros_to_habitat_position
from robot_runtime.common.transforms import check_rigid
from robot_runtime.datasets import habitat_common
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import Finite, Reader, checked, episode_at, write_json
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode, RearrangedObject

Row = Annotated[list[Finite], Field(min_length=4, max_length=4)]
Transform = Annotated[list[Row], Field(min_length=4, max_length=4)]
Placed = Annotated[list[Any], Field(min_length=2, max_length=2)]


class EpisodeRecord(habitat_common.EpisodeRecord):
    """One episode in the file."""

    rigid_objs: list[Placed]
    targets: dict[str, Transform]
    ao_states: NotRequired[dict[str, dict[str, Finite]]]


_SCHEMA = TypeAdapter(EpisodeRecord)
_PLACED_SCHEMA = TypeAdapter(tuple[str, Transform])
_MODELED = frozenset({"episode_id", "scene_id", "start_position"})
_TO_ROS = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def matches(document: Any) -> bool:
    """Whether a JSON document has this format."""
    return habitat_common.first_has(document, "rigid_objs") or habitat_common.first_has(document, "ao_states")


def reader(document: Any, path: Path) -> Reader:
    """The reader of a document's episodes, given the document or its outline."""
    rest = habitat_common.unmodeled(document, ("episodes",))

    def read(index: int, item: Any) -> Episode:
        where = episode_at(index, item)
        record = checked(item, _SCHEMA, path, where)
        info = habitat_common.unmodeled(record, _MODELED) | ({"dataset": rest} if rest else {})
        objects = _objects(record, path, where)
        return Episode(**habitat_common.from_record(record, path, index), goals=(), info=info, details=Layout(objects))

    return read


def save(path: Path, episodes: Sequence[Episode]) -> None:
    """Write one file for habitat-lab.

    Raises:
        EpisodeError: an object has no template, or the file cannot be written.
    """
    rest = episodes[0].info.get("dataset", {}) if episodes else {}
    write_json(path, {"episodes": [_record(episode, path) for episode in episodes], **rest})


def _objects(record: Mapping[str, Any], path: Path, where: str) -> tuple[RearrangedObject, ...]:
    seen: Counter[str] = Counter()
    objects = []
    for number, item in enumerate(record["rigid_objs"]):
        placed = tuple(item) if isinstance(item[0], str) else item
        template, transform = checked(placed, _PLACED_SCHEMA, path, f"{where}rigid_objs.{number}: ")
        name = Path(template).name.split(".")[0]
        handle = f"{name}_:{seen[name]:04d}"
        seen[name] += 1
        target = record["targets"].get(handle)
        objects.append(
            RearrangedObject(
                id=handle,
                start=_pose(transform, f"{path}: {where}field 'rigid_objs.{number}'"),
                goal=None if target is None else _pose(target, f"{path}: {where}field 'targets.{handle}'"),
                category=name,
                template=template,
            )
        )
    missing = record["targets"].keys() - {item.id for item in objects}
    if missing:
        raise EpisodeError(
            f"{path}: {where}field 'targets': names {min(missing)!r:.100}, which 'rigid_objs' does not have",
            "add it there, or download the file again",
        )
    return tuple(objects)


def _pose(transform: Sequence[Sequence[float]], where: str) -> ObjectPose:
    from scipy.spatial.transform import Rotation  # slow import (0.3 s) that no other format needs

    matrix = np.asarray(transform, float)
    try:
        check_rigid(matrix)
    except ValueError as error:
        raise EpisodeError(f"{where}: {error}", "write the transform row by row, without scale") from error
    turn = matrix[:3, :3]
    x, y, z, w = Rotation.from_matrix(_TO_ROS @ turn @ _TO_ROS.T).as_quat().tolist()
    return ObjectPose(habitat_common.to_ros(matrix[:3, 3].tolist()), (w, x, y, z))


def _record(episode: Episode, path: Path) -> dict[str, Any]:
    record = {name: value for name, value in habitat_common.to_record(episode, []).items() if name != "goals"}
    if "rigid_objs" in record and _objects(record, path, "") == Layout.of(episode).objects:
        return record
    for item in Layout.of(episode).objects:
        if item.template is None:
            raise EpisodeError(
                f"{path}: episode {episode.id!r}: object {item.id!r} has no template",
                "state the object's configuration file, or write the episodes as YAML",
            )
    record["rigid_objs"] = [[item.template, _transform(item.start)] for item in Layout.of(episode).objects]
    record["targets"] = {item.id: _transform(item.goal) for item in Layout.of(episode).objects if item.goal is not None}
    return {"ao_states": {}, **record}


def _transform(pose: ObjectPose) -> list[list[float]]:
    from scipy.spatial.transform import Rotation  # slow import (0.3 s) that no other format needs

    w, x, y, z = pose.quaternion
    matrix = np.eye(4)
    matrix[:3, :3] = _TO_ROS.T @ Rotation.from_quat([x, y, z, w]).as_matrix() @ _TO_ROS
    matrix[:3, 3] = ros_to_habitat_position(*pose.position)
    rows: list[list[float]] = matrix.tolist()
    return rows


FORMAT = EpisodeFormat(
    title="Rearrange",
    kind="rearrangement",
    matches=matches,
    reader=reader,
    save=lambda path, episodes, _: save(path, episodes),
    writes=lambda episodes, _: bool(episodes) and bool(Layout.of(episodes[0]).objects),
    rank=40,
)
