"""Observations: a frame and a pose as the sensors of Habitat, with its keys, shapes, types and frames.

The sensors of this module are those that a task of any kind may have; like those of other packages they are offered
by entry points. Each kind of task has its own besides (``TaskKind.sensors``).

The *start frame* has its origin at the pose in which the robot stood when the episode began (x forward, y left);
``gps`` and ``compass`` are the present pose in it, in Habitat's axes.

``semantic`` differs from Habitat's, whose numbers are the objects of a scan: those mean nothing in another place, and
no detector on a robot reports them. Here a pixel's value is the task's category id, as in ``objectgoal``; frames and
logs contain the objects' own numbers. Worked numbers are in ``tests/robot_runtime/test_sensors.py``.
"""

import json
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2, compass, gps, optical_axes, wrap_angle
from robot_runtime.errors import ConfigError, DeviceFault
from robot_runtime.hal import CameraInfo, HeadState, RgbdFrame
from robot_runtime.imaging.depth import training_depth
from robot_runtime.policy import Observation
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.categories import category_bounds, object_category_ids
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import kind_of, sensor_of
from robot_runtime.tasks.sensor import PI, UNBOUNDED, Bound, Moment, Sensor, image_shape, text_sensor
from robot_runtime.tasks.task import HEIGHT_TOLERANCE_M, HFOV_TOLERANCE_DEG, Task

MOST_PROXIMITY_M = 2.0
"""habitat-lab's ``max_detection_radius``."""

_NO_CATEGORY = np.int32(-1)


def _depth_bounds(task: Task) -> tuple[Bound, Bound]:
    camera = task.camera
    return (0.0, 1.0) if camera.depth_normalized else (camera.depth_min_m, camera.depth_max_m)


def _semantic(moment: Moment) -> NDArray[np.int32]:
    objects = moment.frame.semantic
    if objects is None:
        raise DeviceFault("camera: a frame has no object ids", "check the camera's driver")
    ids = np.append(moment.object_category_ids, _NO_CATEGORY)  # -1, no object, finds the last entry
    if objects.size and not -1 <= objects.min() <= objects.max() < len(ids) - 1:
        raise DeviceFault(
            f"camera: a frame shows object {objects.max()}, the scene has {len(ids) - 1} objects",
            "give the camera's driver and the runtime the same scene",
        )
    return ids[objects][:, :, np.newaxis]


def _floor_plan(moment: Moment) -> str:
    to_start = moment.origin.inverse()
    rooms = [
        {"name": room.category, "polygon": [[round(c, 3) for c in to_start.apply(x, y)] for x, y in room.polygon]}
        for room in (moment.scene.rooms if moment.scene else ())
    ]
    return json.dumps(rooms)


def _proximity(moment: Moment) -> NDArray[np.float32]:
    """habitat-sim's distance to the border of its navigation mesh, which keeps off obstacles by the agent's radius."""
    assert moment.scene is not None
    here, radius_m = moment.in_map, moment.task.robot_radius_m
    return np.array([moment.scene.map.proximity_m(here.x_m, here.y_m, radius_m, MOST_PROXIMITY_M)], np.float32)


def _intrinsics(moment: Moment) -> NDArray[np.float32]:
    k = moment.task.camera.intrinsics
    return np.array([k.fx, 0, k.cx, 0, k.fy, k.cy, 0, 0, 1], np.float32)


def _camera_pose(moment: Moment) -> NDArray[np.float32]:
    camera, here, head = moment.task.camera, moment.pose.relative_to(moment.start), moment.head
    x_m, y_m, z_m = moment.mount or (0.0, 0.0, camera.height_m)
    pan_rad, tilt_rad = (head.pan_rad, head.tilt_rad) if head else (0.0, camera.tilt_rad)
    pose = np.eye(4, dtype=np.float32)
    pose[:3, :3] = optical_axes(here.yaw_rad + pan_rad, tilt_rad)
    pose[:3, 3] = *here.apply(x_m, y_m), z_m
    return pose.reshape(16)


RGB = Sensor(
    doc="color, 0..255",
    dtype=np.uint8,
    shape=image_shape(3),
    bounds=lambda _: (0, 255),
    value=lambda moment: moment.frame.rgb.view(),
    rank=0,
)
DEPTH = Sensor(
    doc="distance along the optical axis, clipped to the training range: meters, or normalized to 0..1",
    dtype=np.float32,
    shape=image_shape(1),
    bounds=_depth_bounds,
    value=lambda moment: training_depth(moment.frame.depth_m, moment.task.camera),
    rank=1,
)
GPS = Sensor(
    doc="[forward, right] in the start frame, m; with the task's gps_dimensions 3, [right, up, backward]",
    dtype=np.float32,
    shape=lambda task: (task.gps_dimensions,),
    bounds=lambda _: (-UNBOUNDED, UNBOUNDED),
    value=lambda moment: gps(moment.start, moment.pose, moment.task.gps_dimensions).astype(np.float32),
    rank=2,
)
COMPASS = Sensor(
    doc="heading relative to the start's, rad, counter-clockwise positive, in (-pi, pi]",
    dtype=np.float32,
    shape=lambda _: (1,),
    bounds=lambda _: (-PI, PI),
    value=lambda moment: np.array([compass(moment.start, moment.pose)], np.float32),
    rank=3,
)
EXPOSURE = Sensor(
    doc="stamp of the image's exposure, ns: histories of images are by time",
    dtype=np.int64,
    shape=lambda _: (1,),
    bounds=lambda _: (0, np.iinfo(np.int64).max),
    value=lambda moment: np.array([moment.frame.stamp_ns], np.int64),
    rank=80,
)
SEMANTIC = Sensor(
    doc="id of the task's category of the object in the pixel, -1 for none",
    dtype=np.int32,
    shape=image_shape(1),
    bounds=lambda task: (-1, category_bounds(task)[1]),
    value=_semantic,
    rank=40,
)
FLOOR_PLAN = replace(
    text_sensor(
        "the site's rooms, JSON: [{name, polygon: [[x, y], ...]}], m in the start frame, x forward, y left", _floor_plan
    ),
    rank=90,
)


HEADING = Sensor(
    doc="heading in map, rad, counter-clockwise positive, in (-pi, pi]; 0 along map's x axis, Habitat's -Z",
    dtype=np.float32,
    shape=lambda _: (1,),
    bounds=lambda _: (-PI, PI),
    value=lambda moment: np.array([wrap_angle(moment.in_map.yaw_rad)], np.float32),
    rank=4,
)
PROXIMITY = Sensor(
    doc=f"way from the robot's rim to the nearest place of the map that is not free, m, at most {MOST_PROXIMITY_M:g}",
    dtype=np.float32,
    shape=lambda _: (1,),
    bounds=lambda _: (0.0, MOST_PROXIMITY_M),
    value=_proximity,
    rank=5,
)
CAMERA_INTRINSICS = Sensor(
    doc="matrix of the image's pinhole, pixels, row by row: fx, 0, cx, 0, fy, cy, 0, 0, 1",
    dtype=np.float32,
    shape=lambda _: (9,),
    bounds=lambda _: (0.0, UNBOUNDED),
    value=_intrinsics,
    rank=60,
)
CAMERA_POSE = Sensor(
    doc="4x4 matrix, row by row, from the camera (x right, y down, z forward) to the start frame on the floor "
    "(x forward, y left, z up), m",
    dtype=np.float32,
    shape=lambda _: (16,),
    bounds=lambda _: (-UNBOUNDED, UNBOUNDED),
    value=_camera_pose,
    rank=61,
)


def check_camera(task: Task, info: CameraInfo) -> None:
    """Check a camera against the one that the task's policies were trained with.

    Raises:
        ConfigError: naming both values: another size, field of view or height, or a sensor that the camera lacks.
    """
    wanted, found = task.camera, info.intrinsics
    if (found.width, found.height) != (wanted.width, wanted.height):
        raise ConfigError(
            f"the camera delivers {found.width}x{found.height} pixels, task {task.name!r} was trained on "
            f"{wanted.width}x{wanted.height}",
            "choose that mode in the robot's YAML, or a task preset with the camera's size",
        )
    if abs(found.hfov_deg - wanted.hfov_deg) > HFOV_TOLERANCE_DEG:
        raise ConfigError(
            f"the camera's horizontal field of view is {found.hfov_deg:.2f}°, task {task.name!r} was trained on "
            f"{wanted.hfov_deg:.2f}°",
            "correct 'hfov_deg' in the robot's YAML or choose a task preset with the camera's field of view",
        )
    if abs(info.mount.z_m - wanted.height_m) > HEIGHT_TOLERANCE_M:
        raise ConfigError(
            f"the camera sits {info.mount.z_m:.3f} m above the floor, task {task.name!r} was trained at "
            f"{wanted.height_m:.3f} m",
            "mount the camera at that height and correct the robot's YAML, or choose another task preset",
        )
    if "semantic" in task.sensors and not info.has_semantic:
        raise ConfigError(
            f"task {task.name!r} needs the sensor 'semantic', which this camera does not have",
            "use a simulated robot, or a task without it",
        )
    if "depth" in task.sensors and not info.has_depth:
        raise ConfigError(
            f"task {task.name!r} needs the sensor 'depth', and this camera delivers color only",
            "use an RGB-D camera, or a task without it",
        )


class ObservationBuilder:
    """Builder of the observations of an episode.

    Args:
        task: the task whose sensors are computed.
        start: origin of the start frame, in the localizer's frame.
        goal: what the kind's sensors show (``TaskKind.goal``); None where the episode has no goal.
        object_category_ids: category id of each object of the scene; needed for the sensor ``semantic`` alone.
        origin: origin of the start frame, in map.
        scene: the scene of the episode; needed for the sensors ``floor_plan`` and ``proximity`` alone.
        mount: place of the camera, as in :class:`~robot_runtime.tasks.sensor.Moment`.

    Raises:
        ConfigError: a sensor of the task shows a goal that the episode does not have.
    """

    def __init__(
        self,
        task: Task,
        start: SE2,
        goal: object = None,
        object_category_ids: NDArray[np.int32] | None = None,
        origin: SE2 = SE2(),  # noqa: B008 (frozen)
        scene: Scene | None = None,
        mount: tuple[float, float, float] | None = None,
    ) -> None:
        self._sensors = {name: sensor_of(task, name) for name in task.sensors}
        for name, sensor in self._sensors.items():
            if sensor.goal_type is not None and not isinstance(goal, sensor.goal_type):
                raise ConfigError(
                    f"task {task.name!r}: sensor {name!r} shows a goal that the episode does not have",
                    "use episodes of this task's kind, or remove the sensor from the task",
                )
        self._task = task
        self._start, self._origin = start, origin
        self._goal = goal
        self._object_category_ids = np.empty(0, np.int32) if object_category_ids is None else object_category_ids
        self._scene, self._mount = scene, mount

    def build(self, frame: RgbdFrame, pose: SE2, goal: object = None, head: HeadState | None = None) -> Observation:
        """Build the observation of a frame.

        The arrays are read-only and may share memory with the frame: a policy that could change them could change the
        log. Copy one to change it.

        Args:
            frame: frame of the announced size.
            pose: pose of the robot at its exposure, in the localizer's frame.
            goal: what the kind's sensors show at this step; None if that is the same as at the start.
            head: pan and tilt at its exposure; None for the training camera's.

        Raises:
            DeviceFault: the frame has another size than the camera announced, or lacks the object ids asked for.
        """
        size = (self._task.camera.height, self._task.camera.width)
        if frame.rgb.shape != (*size, 3) or frame.depth_m.shape != size:
            raise DeviceFault(
                f"camera: a frame is {frame.rgb.shape} in color and {frame.depth_m.shape} in depth, not {size}",
                "check the camera's driver: it announced another size",
            )
        moment = Moment(
            task=self._task,
            frame=frame,
            pose=pose,
            start=self._start,
            goal=self._goal if goal is None else goal,
            object_category_ids=self._object_category_ids,
            origin=self._origin,
            scene=self._scene,
            mount=self._mount,
            head=head,
        )
        observation: Observation = {name: sensor.value(moment) for name, sensor in self._sensors.items()}
        for array in observation.values():
            array.flags.writeable = False
        return observation


def observations_of(
    task: Task, scene: Scene, episode: Episode, start: SE2, in_map: SE2, mount: tuple[float, float, float] | None = None
) -> ObservationBuilder:
    """Return the builder of the observations of a checked episode.

    Args:
        task: the task whose sensors are computed.
        scene: the scene of the episode.
        episode: the episode, with resolved goals.
        start: pose at which the robot begins, in the localizer's frame.
        in_map: the same pose in map.
        mount: place of the camera, as in :class:`~robot_runtime.tasks.sensor.Moment`.

    Raises:
        ConfigError: a sensor of the task shows a goal that the episode does not have.
    """
    goal = kind_of(task).goal(task, scene, episode, in_map)
    return ObservationBuilder(task, start, goal, object_category_ids(task, scene), in_map, scene, mount)
