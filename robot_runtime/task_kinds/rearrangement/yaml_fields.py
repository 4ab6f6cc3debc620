"""Fields of rearrangement episodes in the runtime's own YAML; an object's rotation is a yaw or a quaternion."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from typing_extensions import NotRequired

from robot_runtime.datasets.io import Finite, Quaternion, checked
from robot_runtime.datasets.native_yaml import ClosedDict, PointOrFloor, degrees, point, point_numbers
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.tasks.episode import RearrangedObject
from robot_runtime.tasks.goal_program import Program, read_program


class PoseRecord(ClosedDict):
    """See :class:`ObjectPose`."""

    position: PointOrFloor
    yaw_deg: NotRequired[Finite]
    quaternion: NotRequired[Quaternion]
    openness: NotRequired[Annotated[Finite, Field(ge=0, le=1)]]


class ObjectRecord(ClosedDict):
    """See :class:`RearrangedObject`."""

    id: str
    start: PoseRecord
    goal: NotRequired[PoseRecord]
    category: NotRequired[str]
    template: NotRequired[str]


class LayoutRecord(ClosedDict):
    """Fields of the details of an episode."""

    objects: NotRequired[list[ObjectRecord]]
    program: NotRequired[Any]


_SCHEMA = TypeAdapter(LayoutRecord)
_QUATERNION_NORM = 1e-3


def read(fields: Mapping[str, Any], path: Path, where: str) -> tuple[tuple[RearrangedObject, ...], Program | None]:
    """The objects and the program of an episode; see :meth:`EpisodeDetails.from_yaml`."""
    record = checked(dict(fields), _SCHEMA, path, where)
    objects = record.get("objects", ())
    return (
        tuple(_object(item, f"{path}: {where}field 'objects.{number}.") for number, item in enumerate(objects)),
        read_program(record["program"], f"{path}: {where}program") if "program" in record else None,
    )


def write(objects: Sequence[RearrangedObject], program: Program | None) -> dict[str, Any]:
    """The fields of objects and a program; see :meth:`EpisodeDetails.to_yaml`."""
    record: dict[str, Any] = {"objects": [_object_record(item) for item in objects]} if objects else {}
    return record if program is None else {**record, "program": program.to_document()}


def _object(record: ObjectRecord, where: str) -> RearrangedObject:
    return RearrangedObject(
        id=record["id"],
        start=_object_pose(record["start"], f"{where}start'"),
        goal=_object_pose(record["goal"], f"{where}goal'") if "goal" in record else None,
        category=record.get("category"),
        template=record.get("template"),
    )


def _object_pose(record: PoseRecord, where: str) -> ObjectPose:
    if "quaternion" in record and "yaw_deg" in record:
        raise EpisodeError(f"{where}: has both 'yaw_deg' and 'quaternion'", "keep one of them")
    half_rad = math.radians(record.get("yaw_deg", 0.0)) / 2
    w, x, y, z = record.get("quaternion", (math.cos(half_rad), 0.0, 0.0, math.sin(half_rad)))
    if abs(math.hypot(w, x, y, z) - 1) > _QUATERNION_NORM:
        raise EpisodeError(f"{where}: 'quaternion' does not have length 1", "give a unit quaternion w, x, y, z")
    return ObjectPose(point(record["position"]), (w, x, y, z), record.get("openness"))


def _object_record(item: RearrangedObject) -> dict[str, Any]:
    names = {"id": item.id, "category": item.category, "template": item.template}
    stated = {name: value for name, value in names.items() if value is not None}
    goal = {} if item.goal is None else {"goal": _object_pose_record(item.goal)}
    return {**stated, "start": _object_pose_record(item.start), **goal}


def _object_pose_record(pose: ObjectPose) -> dict[str, Any]:
    record: dict[str, Any] = {"position": point_numbers(pose.position)}
    if pose.quaternion != (1.0, 0.0, 0.0, 0.0):
        record |= _rotation(pose.quaternion)
    return record if pose.openness is None else {**record, "openness": pose.openness}


def _rotation(quaternion: tuple[float, float, float, float]) -> dict[str, Any]:
    """The rotation as a yaw where that is exact, else as a quaternion."""
    w, _, _, z = quaternion
    yaw_deg = degrees(2 * math.atan2(z, w))
    half_rad = math.radians(yaw_deg) / 2
    if quaternion == (math.cos(half_rad), 0.0, 0.0, math.sin(half_rad)):
        return {"yaw_deg": yaw_deg}
    return {"quaternion": list(quaternion)}
