"""The header of an imported log: task, scene, episode, robot."""

import hashlib
import json
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from drivers.ros.bag import topic_layout as at
from drivers.ros.bag.images import BagImages
from drivers.ros.bag.poses import PoseTrack, extent
from drivers.ros.bag.reader import BagReader
from drivers.ros.options import RobotOptions
from drivers.ros.robot_variants import base_info
from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.provenance import provenance
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.hal import CameraInfo, Mount
from robot_runtime.recording import json_output
from robot_runtime.records import EpisodeHeader
from robot_runtime.robots.camera_mount import load_mount
from robot_runtime.robots.loader import RobotFile
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneFile
from robot_runtime.sensors import check_camera
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.kind import sensor_of
from robot_runtime.tasks.task import Success, Task, TrainingCamera

MARGIN_M = 1.0
CELL_M = 0.05


@dataclass(frozen=True)
class ImportOptions:
    """Options of the import of a foreign drive.

    Attributes:
        robot: Content of the YAML file.
        ros: Its options.
        agent: Name of the driver, for the log.
        task: The driven task; None for waypoints.
        scene: None for the bag's map.
        episode: None for an episode without goal.
        dataset: File of the episode.
        poses: ``robot``: the localizers of the YAML; ``odometry``: the wheels alone, from the episode's start.
        without: Data that the bag lacks: ``depth``, ``head``, ``contact``.
        tolerance: See ``motion_segments.ActionSegmenter``.
        min_rest_s: Shortest pause between two actions.
        every_m: Distance between two waypoints.
        every_deg: Turn between two waypoints.
        stop: Whether the driver called stop at the end.
        any_camera: Whether to replace the task's camera by the bag's; the task's name then shows it.
    """

    robot: RobotFile
    ros: RobotOptions
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
            raise ConfigError("an episode and a stop require a task", "add --task")
        if self.episode is not None and self.scene is None:
            raise ConfigError("an episode requires a scene", "add --scene")
        if self.task is not None and Action.GRAB_RELEASE in self.task.actions:
            raise ConfigError(
                f"task {self.task.name!r} moves objects, whose poses no bag contains", "choose another task"
            )


def camera_info(ros: RobotOptions, images: BagImages) -> CameraInfo:
    """Return the description of the bag's camera."""
    x_m, y_m, z_m = load_mount(config.find_preset("mounts", ros.camera.mount)).sensor(SE2(), 0.0, 0.0)[:3, 3]
    return CameraInfo(
        images.intrinsics,
        Mount(float(x_m), float(y_m), float(z_m)),
        ros.camera.rate_hz,
        ros.camera.depth_min_m,
        ros.camera.depth_max_m,
        images.depth_unit_m,
        has_semantic=False,
    )


def task_for(options: ImportOptions, camera: CameraInfo, steps: int) -> Task:
    """Return the task of the options, without goal sensors if there is no goal; else a teleoperation task.

    Raises:
        ConfigError: The bag's camera is not the one that the task's policies were trained with.
    """
    if options.task is None:
        return _teleop_task(options, camera, steps)
    task = options.task
    task.check_base(base_info(options.ros, options.robot.name))
    if options.any_camera:
        i = camera.intrinsics
        own = replace(task.camera, width=i.width, height=i.height, hfov_deg=i.hfov_deg, height_m=camera.mount.z_m)
        if own != task.camera:
            task = replace(task, name=f"{task.name}+camera", camera=own)
    if options.episode is None:
        sensors = tuple(name for name in task.sensors if sensor_of(task, name).goal_type is None)
        task = replace(task, name=f"{task.name}-goal", sensors=sensors)
    try:
        check_camera(task, camera)
    except ConfigError as error:
        raise ConfigError(
            error.message, f"{error.remedy}; or add --any-camera: the log then has the task with the bag's camera"
        ) from error
    return task


def _teleop_task(options: ImportOptions, camera: CameraInfo, steps: int) -> Task:
    """Return a task without goal and motion actions; its logs cannot be scored."""
    i = camera.intrinsics
    return Task(
        name="drive",
        kind="pointnav",
        source="a bag; steps are waypoints",
        actions=(Action.STOP,),
        magnitudes=Magnitudes(options.every_m, options.every_deg, options.every_deg),
        sensors=("rgb", "depth", "gps", "compass"),
        camera=TrainingCamera(
            i.width, i.height, i.hfov_deg, camera.mount.z_m, camera.depth_min_m, camera.depth_max_m, False
        ),
        robot_radius_m=base_info(options.ros, "base").radius_m,
        max_steps=max(1, steps),
        success=Success("distance", 0.2),
    )


def scene_for(options: ImportOptions, bag: BagReader, track: PoseTrack) -> Scene:
    """Return the scene of the options; else the bag's map, if poses are in it; else an unknown map.

    Raises:
        WrongDefinition: ``/map`` is not a map.
        DamagedBag: ``/map`` is damaged.
    """
    if options.scene is not None:
        return options.scene
    occupancy = _bag_map(bag) if options.poses == "robot" and at.MAP in bag.kinds else _unknown_map(track)
    file = SceneFile(schema=1, name=bag.path.stem, rooms=(), objects=(), source={"bag": bag.path.name})
    digest = hashlib.sha256(json.dumps(json_output.plain(file)).encode())
    digest.update(occupancy.to_pgm())
    return Scene(bag.path.parent, file, occupancy, {}, digest.hexdigest())


def _bag_map(bag: BagReader) -> OccupancyMap:
    bag.require(at.MAP, ("nav_msgs/OccupancyGrid",), "the map", "give the scene with --scene")
    grid = next(bag.messages((at.MAP,))).decoded()
    info = grid.info
    values = np.asarray(grid.data, np.int8).reshape(info.height, info.width)
    if abs(info.origin.orientation.z) > 1e-6 or not info.resolution > 0:
        raise ConfigError(
            f"{bag.path}: topic {at.MAP}: the map is rotated or has no resolution", "give the scene with --scene"
        )
    cells = np.full(values.shape, Cell.UNKNOWN, np.uint8)
    # The thresholds of map_server: above 0.65 occupied, below 0.196 free.
    cells[values > 65] = Cell.OCCUPIED
    cells[(values >= 0) & (values < 19.6)] = Cell.FREE
    # The message has a 32-bit float, whose shortest decimal form is the resolution.
    resolution_m = float(np.format_float_positional(np.float32(info.resolution)))
    return OccupancyMap(cells, resolution_m, info.origin.position.x, info.origin.position.y)


def _unknown_map(track: PoseTrack) -> OccupancyMap:
    x0, y0, x1, y1 = extent(track)
    rows, columns = (math.ceil((high - low + 2 * MARGIN_M) / CELL_M) for low, high in ((y0, y1), (x0, x1)))
    cells = np.full((rows, columns), Cell.UNKNOWN, np.uint8)
    return OccupancyMap(cells, CELL_M, x0 - MARGIN_M, y0 - MARGIN_M)


def episode_for(options: ImportOptions, task: Task, scene: Scene, bag: Path, start: SE2) -> Episode:
    """Return the episode of the options; else one with the drive's start and no goal.

    Args:
        options: Of the import.
        task: The log's task.
        scene: The log's scene.
        bag: Path, for messages.
        start: First pose of the drive, in map.

    Raises:
        EpisodeError: The episode cannot be run in the scene, or begins elsewhere.
    """
    if options.episode is None:
        return Episode(bag.stem, scene.name, start, ())
    episode = check_episode(task, scene, options.episode, GeodesicMap(scene.map, task.robot_radius_m))
    limits = options.ros.placer
    apart_m = start.distance_to(episode.start)
    apart_deg = abs(math.degrees(wrap_angle(start.yaw_rad - episode.start.yaw_rad)))
    if apart_m > limits.within_m or apart_deg > limits.within_deg:
        raise EpisodeError(
            f"{bag}: the drive begins {apart_m:.2f} m and {apart_deg:.0f}° from the start of episode {episode.id!r}",
            "give the episode that was driven; `placer` in the robot's YAML has the tolerance",
        )
    return episode


def make_header(
    options: ImportOptions, task: Task, scene: Scene, episode: Episode, camera: CameraInfo, bag: Path, start_ns: int
) -> EpisodeHeader:
    """Return the header; the options of the import are added to the robot's configuration."""
    common = {"poses": options.poses, "without": sorted(options.without), "stop": options.stop}
    segmentation = {"tolerance": options.tolerance, "min_rest_s": options.min_rest_s}
    every = {"every_m": options.every_m, "every_deg": options.every_deg}
    imported = {"file": bag.name, **common, **(every if options.task is None else segmentation)}
    return EpisodeHeader(
        episode=episode,
        task=task,
        scene=scene,
        robot=options.robot.name,
        robot_config={**asdict(options.robot), "bag": imported},
        agent=options.agent,
        seed=0,
        intrinsics=camera.intrinsics,
        depth_unit_m=camera.depth_unit_m,
        mount=(camera.mount.x_m, camera.mount.y_m, camera.mount.z_m),
        start_ns=start_ns,
        provenance=provenance(),
        dataset=options.dataset,
        senses_contact="contact" not in options.without,
    )
