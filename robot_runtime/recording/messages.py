"""Foxglove messages of poses, transforms, calibration, path and scene, for viewers.

Nothing reads these back: the runtime's own records (``json_records``) have the same data without loss.
"""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from typing import Any

import numpy as np
from foxglove_schemas_protobuf.CameraCalibration_pb2 import CameraCalibration
from foxglove_schemas_protobuf.Color_pb2 import Color
from foxglove_schemas_protobuf.CubePrimitive_pb2 import CubePrimitive
from foxglove_schemas_protobuf.FrameTransform_pb2 import FrameTransform
from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms
from foxglove_schemas_protobuf.LinePrimitive_pb2 import LinePrimitive
from foxglove_schemas_protobuf.PackedElementField_pb2 import PackedElementField
from foxglove_schemas_protobuf.Point3_pb2 import Point3
from foxglove_schemas_protobuf.PointCloud_pb2 import PointCloud
from foxglove_schemas_protobuf.Pose_pb2 import Pose
from foxglove_schemas_protobuf.PoseInFrame_pb2 import PoseInFrame
from foxglove_schemas_protobuf.Quaternion_pb2 import Quaternion
from foxglove_schemas_protobuf.SceneEntity_pb2 import SceneEntity
from foxglove_schemas_protobuf.SceneUpdate_pb2 import SceneUpdate
from foxglove_schemas_protobuf.SpherePrimitive_pb2 import SpherePrimitive
from foxglove_schemas_protobuf.TextPrimitive_pb2 import TextPrimitive
from foxglove_schemas_protobuf.Vector3_pb2 import Vector3
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.hal import PoseEstimate
from robot_runtime.recording.images import CAMERA_FRAME, timestamp
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.tasks.episode import EpisodeDetails
from robot_runtime.tasks.episode_objects import DEFAULT_SIZE_M, size_of

MAP_FRAME = "map"
BASE_FRAME = "base_link"

_LINE_Z_M = 0.02
_PATH_POINTS = 500
"""Largest number of points of a path, so that long logs do not grow with its square."""

_TRACK = Color(r=0.16, g=0.47, b=0.84, a=1.0)
_CONTACT = Color(r=0.84, g=0.15, b=0.16, a=1.0)
_GOAL = Color(r=0.13, g=0.65, b=0.35, a=1.0)
_OBJECT = Color(r=0.55, g=0.55, b=0.6, a=0.35)


def calibration(header: EpisodeHeader) -> CameraCalibration:
    """Calibration of the ideal pinhole camera of the frames."""
    i = header.intrinsics
    return CameraCalibration(
        timestamp=timestamp(header.start_ns),
        frame_id=CAMERA_FRAME,
        width=i.width,
        height=i.height,
        distortion_model="plumb_bob",
        D=[0.0] * 5,
        K=[i.fx, 0, i.cx, 0, i.fy, i.cy, 0, 0, 1],
        R=[1, 0, 0, 0, 1, 0, 0, 0, 1],
        P=[i.fx, 0, i.cx, 0, 0, i.fy, i.cy, 0, 0, 0, 1, 0],
    )


def pose_in_frame(estimate: PoseEstimate) -> PoseInFrame:
    """A pose estimate without its covariance."""
    return PoseInFrame(timestamp=timestamp(estimate.stamp_ns), frame_id=estimate.frame, pose=planar(estimate.pose))


def transforms(header: EpisodeHeader, record: StepRecord) -> FrameTransforms:
    """Poses of robot and camera by the referee, and the frame of the policy's poses if it is another."""
    x, y, z = header.mount
    result = [
        _transform(record.frame.stamp_ns, record.referee.frame, BASE_FRAME, planar(record.referee.pose)),
        _transform(
            record.frame.stamp_ns,
            BASE_FRAME,
            CAMERA_FRAME,
            Pose(position=Vector3(x=x, y=y, z=z), orientation=_looking(record.head.pan_rad, record.head.tilt_rad)),
        ),
    ]
    if record.pose.frame != record.referee.frame:
        origin = record.referee.pose @ record.pose.pose.inverse()
        result.append(_transform(record.frame.stamp_ns, record.referee.frame, record.pose.frame, planar(origin)))
    return FrameTransforms(transforms=result)


def scene(header: EpisodeHeader) -> SceneUpdate:
    """The scene's objects as boxes, the goals as spheres with a label."""
    stamp = timestamp(header.start_ns)
    boxes = [_box(item.pose, item.size) for item in header.scene.objects]
    goals = header.episode.goals
    spheres = [_sphere(goal.x_m, goal.y_m, goal.z_m, 0.2, _GOAL) for goal in goals]
    labels = [
        TextPrimitive(
            pose=planar(SE2(goal.x_m, goal.y_m, 0.0), goal.z_m + 0.3),
            billboard=True,
            font_size=0.15,
            color=_GOAL,
            text=goal.object_id or "goal",
        )
        for goal in goals
    ]
    return SceneUpdate(
        entities=[
            SceneEntity(timestamp=stamp, frame_id=MAP_FRAME, id="objects", cubes=boxes),
            SceneEntity(timestamp=stamp, frame_id=MAP_FRAME, id="goals", spheres=spheres, texts=labels),
        ]
    )


def objects_now(header: EpisodeHeader, record: StepRecord) -> SceneUpdate:
    """The scene's objects at their current poses, without held ones."""
    known = {item.id: item for item in header.scene.objects}
    poses, held = record.state.poses, record.state.held
    fixed = [item for name, item in known.items() if name not in poses and name not in held]
    boxes = [_box(item.pose, item.size) for item in fixed]
    added = {item.id: size_of(item, header.scene) for item in EpisodeDetails.of(header.episode).objects_to_move}
    for name, pose in poses.items():
        boxes.append(_box(pose, known[name].size if name in known else added.get(name, DEFAULT_SIZE_M)))
    stamp = timestamp(record.times.observed_ns)
    return SceneUpdate(entities=[SceneEntity(timestamp=stamp, frame_id=MAP_FRAME, id="objects", cubes=boxes)])


def track(previous: SE2, record: StepRecord) -> SceneUpdate:
    """The segment of trajectory of a step, and a red sphere at a contact."""
    here = record.referee.pose
    line = LinePrimitive(
        type=LinePrimitive.LINE_STRIP,
        pose=planar(SE2()),
        thickness=0.03,
        points=[Point3(x=p.x_m, y=p.y_m, z=_LINE_Z_M) for p in (previous, here)],
        color=_TRACK,
    )
    touched = record.result is not None and record.result.collided
    entity = SceneEntity(
        timestamp=timestamp(record.referee.stamp_ns),
        frame_id=record.referee.frame,
        id=f"track {record.index}",
        lines=[line],
        spheres=[_sphere(here.x_m, here.y_m, _LINE_Z_M, 0.12, _CONTACT)] if touched else [],
    )
    return SceneUpdate(entities=[entity])


def path(positions: array[float], record: StepRecord) -> PointCloud:
    """The referee's positions up to a step, as points: Rerun draws no lines of messages.

    Args:
        positions: x and y of all steps in turns, in meters; the last are those of ``record``.
        record: the step.
    """
    rows = np.frombuffer(positions, np.float32).reshape(-1, 2)
    thinned = np.vstack((rows[: -1 : 1 + len(rows) // _PATH_POINTS], rows[-1:]))
    points = np.full((len(thinned), 3), _LINE_Z_M, np.float32)
    points[:, :2] = thinned
    return PointCloud(
        timestamp=timestamp(record.referee.stamp_ns),
        frame_id=record.referee.frame,
        pose=planar(SE2()),
        point_stride=points.strides[0],
        fields=[
            PackedElementField(name=name, offset=4 * axis, type=PackedElementField.FLOAT32)
            for axis, name in enumerate("xyz")
        ],
        data=points.tobytes(),
    )


def planar(pose: SE2, z_m: float = 0.0) -> Pose:
    """A planar pose at a height."""
    half = pose.yaw_rad / 2
    return Pose(
        position=Vector3(x=pose.x_m, y=pose.y_m, z=z_m), orientation=Quaternion(z=math.sin(half), w=math.cos(half))
    )


def _box(pose: ObjectPose, size: tuple[float, float, float]) -> CubePrimitive:
    x, y, z = pose.position
    qw, qx, qy, qz = pose.quaternion
    return CubePrimitive(
        pose=Pose(position=Vector3(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw)),
        size=Vector3(x=size[0], y=size[1], z=size[2]),
        color=_OBJECT,
    )


def _transform(stamp_ns: int, parent: str, child: str, pose: Pose) -> FrameTransform:
    return FrameTransform(
        timestamp=timestamp(stamp_ns),
        parent_frame_id=parent,
        child_frame_id=child,
        translation=pose.position,
        rotation=pose.orientation,
    )


def _sphere(x_m: float, y_m: float, z_m: float, diameter_m: float, color: Any) -> SpherePrimitive:
    return SpherePrimitive(
        pose=planar(SE2(x_m, y_m, 0.0), z_m), size=Vector3(x=diameter_m, y=diameter_m, z=diameter_m), color=color
    )


@lru_cache(maxsize=16)  # a head that rests reports the same angles at every step
def _looking(pan_rad: float, tilt_rad: float) -> Quaternion:
    """Orientation of the camera's optical frame in base_link."""
    values: NDArray[np.float64] = Rotation.from_matrix(optical_axes(pan_rad, tilt_rad)).as_quat()
    x, y, z, w = (float(v) for v in values)
    return Quaternion(x=x, y=y, z=z, w=w)
