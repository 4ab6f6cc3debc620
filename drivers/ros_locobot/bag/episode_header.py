"""Whose drive it was, where and to what end: the header of an imported log."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from drivers.ros_locobot.bag import topic_layout as at
from drivers.ros_locobot.bag.images import BagImages
from drivers.ros_locobot.bag.poses import PoseTrack, extent
from drivers.ros_locobot.bag.reader import BagReader
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.robot_variants import base_info
from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.provenance import provenance
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.hal import CameraInfo, Mount
from robot_runtime.recording import json_records
from robot_runtime.records import EpisodeHeader
from robot_runtime.robots.camera_mount import load_mount
from robot_runtime.robots.loader import RobotFile
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneFile
from robot_runtime.sensors import check_camera
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.registry import check_episode
from robot_runtime.tasks.task import GOAL_SENSORS, Success, Task, TrainingCamera

MARGIN_M = 1.0
CELL_M = 0.05


@dataclass(frozen=True)
class ImportOptions:
    """What the caller says of a drive.

    Attributes:
        robot: the YAML file's content; its options are ``ros``.
        task, scene, episode: None where the caller does not say.
        dataset: the file that the episode is of.
        poses: ``robot``: as the YAML says; ``odometry``: the wheels alone, from the episode's start.
        without: what the bag is known to lack: ``depth``, ``head``, ``contact``.
        tolerance: see ``segments.ActionSegmenter``. min_rest_s: shortest pause between two actions.
        every_m, every_deg: without a task, between two steps.
        stop: whether the driver said stop at the end.
        any_camera: take the bag's camera for the task's, and say so in the task's name.
    """

    robot: RobotFile
    ros: RosOptions
    agent: str = "drive"
    task: Task | None = None
    scene: Scene | None = None
    episode: Episode | None = None
    dataset: str = ""
    poses: str = "robot"
    without: Collection[str] = field(default_factory=tuple)
    tolerance: float = 0.2
    min_rest_s: float = 0.15
    every_m: float = 0.25
    every_deg: float = 30.0
    stop: bool = False
    any_camera: bool = False

    def __post_init__(self) -> None:
        if self.task is None and (self.episode is not None or self.stop):
            raise ConfigError("an episode and a stop belong to a task", "add --task")
        if self.episode is not None and self.scene is None:
            raise ConfigError("an episode belongs to a scene", "add --scene")
        if self.task is not None and self.task.rearrangement is not None:
            raise ConfigError(
                f"task {self.task.name!r} moves objects, of which no bag says where they are", "choose another task"
            )


def camera_info(ros: RosOptions, pictures: BagImages) -> CameraInfo:
    """What the bag's camera delivers."""
    x_m, y_m, z_m = load_mount(config.find_preset("mounts", ros.camera.mount)).sensor(SE2(), 0.0, 0.0)[:3, 3]
    return CameraInfo(
        pictures.intrinsics,
        Mount(float(x_m), float(y_m), float(z_m)),
        ros.camera.rate_hz,
        ros.camera.depth_min_m,
        ros.camera.depth_max_m,
        pictures.depth_unit_m,
        has_semantic=False,
    )


def task_for(said: ImportOptions, camera: CameraInfo, steps: int) -> Task:
    """The caller's task, without the sensors that would tell a goal if there is none; else that of a mere drive.

    Raises:
        ConfigError: the bag's camera is not the one that the task's policies were trained with.
    """
    if said.task is None:
        return _teleop_task(said, camera, steps)
    task = said.task
    if said.any_camera:
        i = camera.intrinsics
        own = replace(task.camera, width=i.width, height=i.height, hfov_deg=i.hfov_deg, height_m=camera.mount.z_m)
        if own != task.camera:
            task = replace(task, name=f"{task.name}+camera", camera=own)
    if said.episode is None:
        kept = tuple(name for name in task.sensors if name not in GOAL_SENSORS)
        task = replace(task, name=f"{task.name}-goal", sensors=kept)
    try:
        check_camera(task, camera)
    except ConfigError as error:
        raise ConfigError(
            error.message, f"{error.remedy}; or add --any-camera: then the log has the task with the bag's camera"
        ) from error
    return task


def _teleop_task(said: ImportOptions, camera: CameraInfo, steps: int) -> Task:
    """No actions but the one that every task has, and no goal: it cannot be scored."""
    i = camera.intrinsics
    return Task(
        name="drive",
        kind="pointnav",
        source="a bag; steps are waypoints",
        actions=(Action.STOP,),
        magnitudes=Magnitudes(said.every_m, said.every_deg, said.every_deg),
        sensors=("rgb", "depth", "gps", "compass"),
        camera=TrainingCamera(
            i.width, i.height, i.hfov_deg, camera.mount.z_m, camera.depth_min_m, camera.depth_max_m, False
        ),
        robot_radius_m=base_info(said.ros, "base").radius_m,
        max_steps=max(1, steps),
        success=Success("distance", 0.2),
    )


def scene_for(said: ImportOptions, bag: BagReader, track: PoseTrack) -> Scene:
    """The caller's scene; else the bag's map, if poses are in it; else one of which nothing is known.

    Raises:
        WrongDefinition, DamagedBag: ``/map`` is no map.
    """
    if said.scene is not None:
        return said.scene
    occupancy = _bag_map(bag) if said.poses == "robot" and at.MAP in bag.kinds else _unknown_map(track)
    file = SceneFile(schema=1, name=bag.path.stem, rooms=(), objects=(), source={"bag": bag.path.name})
    digest = hashlib.sha256(json.dumps(json_records.plain(file)).encode())
    digest.update(occupancy.to_pgm())
    return Scene(bag.path.parent, file, occupancy, {}, digest.hexdigest())


def _bag_map(bag: BagReader) -> OccupancyMap:
    bag.require(at.MAP, ("nav_msgs/OccupancyGrid",), "the map", "give the scene with --scene")
    grid = next(bag.messages((at.MAP,))).decoded()
    info = grid.info
    values = np.asarray(grid.data, np.int8).reshape(info.height, info.width)
    if abs(info.origin.orientation.z) > 1e-6 or not info.resolution > 0:
        raise ConfigError(
            f"{bag.path}: topic {at.MAP}: the map is turned or has no resolution", "give the scene with --scene"
        )
    cells = np.full(values.shape, Cell.UNKNOWN, np.uint8)
    # As map_server reads its files: above 0.65 occupied, below 0.196 free.
    cells[values > 65] = Cell.OCCUPIED
    cells[(values >= 0) & (values < 19.6)] = Cell.FREE
    # The message has 32 bits for a number such as 0.05.
    resolution_m = float(np.format_float_positional(np.float32(info.resolution)))
    return OccupancyMap(cells, resolution_m, info.origin.position.x, info.origin.position.y)


def _unknown_map(track: PoseTrack) -> OccupancyMap:
    x0, y0, x1, y1 = extent(track)
    rows, columns = (math.ceil((high - low + 2 * MARGIN_M) / CELL_M) for low, high in ((y0, y1), (x0, x1)))
    cells = np.full((rows, columns), Cell.UNKNOWN, np.uint8)
    return OccupancyMap(cells, CELL_M, x0 - MARGIN_M, y0 - MARGIN_M)


def episode_for(said: ImportOptions, task: Task, scene: Scene, bag: Path, start: SE2) -> Episode:
    """The caller's episode, if the drive begins where it does; else one that has that start and no goal.

    Args:
        start: where the drive begins, in map.

    Raises:
        EpisodeError: it cannot be run in the scene, or begins elsewhere.
    """
    if said.episode is None:
        return Episode(bag.stem, scene.name, start, ())
    episode = check_episode(task, scene, said.episode, GeodesicMap(scene.map, task.robot_radius_m))
    near = said.ros.placer
    apart_m = start.distance_to(episode.start)
    apart_deg = abs(math.degrees(wrap_angle(start.yaw_rad - episode.start.yaw_rad)))
    if apart_m > near.within_m or apart_deg > near.within_deg:
        raise EpisodeError(
            f"{bag}: the drive begins {apart_m:.2f} m and {apart_deg:.0f}° from the start of episode {episode.id!r}",
            "give the episode that was driven; `placer` in the robot's YAML says how near is near enough",
        )
    return episode


def make_header(
    said: ImportOptions, task: Task, scene: Scene, episode: Episode, camera: CameraInfo, bag: Path, start_ns: int
) -> EpisodeHeader:
    """The header; what was assumed of the bag stands beside the robot's YAML."""
    assumed = {"poses": said.poses, "without": sorted(said.without), "stop": said.stop}
    recognised = {"tolerance": said.tolerance, "min_rest_s": said.min_rest_s}
    every = {"every_m": said.every_m, "every_deg": said.every_deg}
    imported = {"file": bag.name, **assumed, **(every if said.task is None else recognised)}
    return EpisodeHeader(
        episode=episode,
        task=task,
        scene=scene,
        robot=said.robot.name,
        robot_config={**asdict(said.robot), "bag": imported},
        agent=said.agent,
        seed=0,
        intrinsics=camera.intrinsics,
        depth_unit_m=camera.depth_unit_m,
        mount=(camera.mount.x_m, camera.mount.y_m, camera.mount.z_m),
        start_ns=start_ns,
        provenance=provenance(),
        dataset=said.dataset,
    )
