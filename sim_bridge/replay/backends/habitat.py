"""Replay backend of habitat-sim: its agent on its navigation mesh, with sensors at the pose of the log's camera.

Written against the Python interface of habitat-sim 0.2.2 to 0.3.4 (``simulator.py``, ``agent/agent.py``,
``agent/controls``, ``bindings/SensorBindings.cpp``, ``bindings/ShortestPathBindings.cpp``). Habitat's frame is
right-handed, y up, and an agent looks along -z (:mod:`robot_runtime.common.geometry`).

Semantic sensors show 0 everywhere: scenes are written without annotations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import TimedAction
from robot_runtime.common import config
from robot_runtime.common.config import NonNegative
from robot_runtime.common.geometry import (
    SE2,
    habitat_quaternion_to_yaw,
    habitat_to_ros_position,
    ros_to_habitat_position,
    wrap_angle,
    yaw_to_habitat_quaternion,
)
from robot_runtime.errors import ConfigError, InvalidStart, RuntimeFault, SceneError
from robot_runtime.hal.simulation import Pose3
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.backends.base import SimulatorFailed
from sim_bridge.replay.backends.external import ExternalBackend, axes_from, imported
from sim_bridge.replay.backends.pinhole_camera import PinholeCamera
from sim_bridge.scenes.habitat_export import export_scene
from sim_bridge.scenes.habitat_navmesh import Effective, ask
from sim_bridge.scenes.habitat_stage import Up, stated

INSTALL = (
    "conda install habitat-sim headless -c conda-forge -c aihabitat, or build it from source where there is no package "
    "for this Python"
)

_COLOR, _DEPTH = "color", "depth"
_NAMES = {Action.MOVE_FORWARD: "move_forward", Action.TURN_LEFT: "turn_left", Action.TURN_RIGHT: "turn_right"}
_AXES = axes_from(ros_to_habitat_position)

_PLACED_Z_M = 0.25
"""Greatest height above the floor at which an agent stands on it: habitat-sim's own cells are 0.2 m high."""

_ANY_CAMERA = PinholeCamera(8, 8, 4.0, (0, 8), (0, 8))
"""Camera of a simulator of which no image is wanted: habitat-sim loads geometry only where there is a sensor."""


@dataclass(frozen=True)
class HabitatOptions(config.Strict):
    """``--twin-arg KEY=VALUE``.

    Attributes:
        scene: file of the scene (``.glb``, ``.ply``) or its name in ``dataset``; None for the meshes of the log's scene
            folder or, where it has none, for the file that the episode names.
        dataset: scene dataset configuration, ``*.scene_dataset_config.json``.
        navmesh: file; None for the file next to the scene or, without that, a mesh computed for the task's robot.
        navmesh_defaults: whether that mesh has the cells and the climb of ``NavMeshSettings.set_defaults``, as
            habitat-lab computes it; otherwise it is fine enough for the robot's radius and ``climb_m``.
        climb_m: greatest step; by default what the simulated robot drives over.
        up: axis that points up in ``scene``, ``y`` or ``z``; None for what its stage configuration says or, without
            one, habitat-sim supposes: z in a GLB.
        allow_sliding: whether the agent slides along obstacles.
        gpu: number of the device that renders.
        floor_m: height of the floor in the scene; None for the episode's own, in a scene folder 0.
        x_m: position of the scene's origin in ``map``.
        y_m: position of the scene's origin in ``map``.
        yaw_deg: rotation of the scene in ``map``, left positive.
    """

    scene: str | None = None
    dataset: str | None = None
    navmesh: str | None = None
    navmesh_defaults: bool = False
    climb_m: NonNegative = 0.03
    up: Up | None = None
    allow_sliding: bool = False
    gpu: int = 0
    floor_m: float | None = None
    x_m: float = 0.0
    y_m: float = 0.0
    yaw_deg: float = 0.0


def make_backend(
    header: EpisodeHeader, scene: Scene | None, images: bool, options: Mapping[str, Any], where: str
) -> HabitatBackend:
    """Make a habitat-sim backend; see ``BackendFactory``."""
    parsed = config.parse(dict(options), HabitatOptions, where)
    return HabitatBackend(imported("habitat_sim", where, INSTALL), header, scene, images, parsed, where)


class HabitatBackend(ExternalBackend):
    """habitat-sim in the scene of a log's episode.

    Raises:
        SceneError: habitat-sim cannot load the scene, or finds no navigable floor in it.
    """

    def __init__(
        self,
        library: ModuleType,
        header: EpisodeHeader,
        scene: Scene | None,
        images: bool,
        options: HabitatOptions,
        where: str,
    ) -> None:
        super().__init__(header, scene, images)
        self._library, self._options, self._where = library, options, where
        self._map_from_scene = SE2(options.x_m, options.y_m, math.radians(options.yaw_deg))
        self._tilt_rad = 0.0
        self._drawn: PinholeCamera | None = None
        self._simulator: Any = None
        self._made = TemporaryDirectory(prefix="robot-runtime-")
        self._navmesh: str | None = options.navmesh
        self._cells: Effective | None = None
        try:
            self._scene, solid, floor_m = _scene_files(header, scene, options, Path(self._made.name), where)
            self._floor_m = floor_m if options.floor_m is None else options.floor_m
            self._open(None, solid)
            if solid != self._scene:
                self._open(None, self._scene)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        return f"habitat-sim {getattr(self._library, '__version__', '')}".strip()

    def facts(self, header: EpisodeHeader) -> tuple[str, ...]:
        with self._calling("PathFinder.navigable_area"):
            area_m2 = float(self._simulator.pathfinder.navigable_area)
        cells = self._cells.sentence() if self._cells is not None else "as it was read from its file"
        return (f"navigation mesh: {cells}; {area_m2:.1f} m²", *self._distances(header))

    def _distances(self, header: EpisodeHeader) -> tuple[str, ...]:
        """The episode's shortest path by the mesh, and by the log's map."""
        episode = header.episode
        if len(episode.goals) != 1 or episode.shortest_path_m is None:
            return ()
        path = self._library.ShortestPath()
        path.requested_start, path.requested_end = (
            np.asarray(self._snapped(place.relative_to(self._map_from_scene)), np.float32)
            for place in (episode.start, SE2(episode.goals[0].x_m, episode.goals[0].y_m, 0.0))
        )
        with self._calling("PathFinder.find_path"):
            found = self._simulator.pathfinder.find_path(path)
        by_mesh = f"{path.geodesic_distance:.3f} m" if found else "no path"
        return (f"start to goal: {by_mesh} by the navigation mesh, {episode.shortest_path_m:.3f} m as recorded",)

    def place(self, pose: SE2, tilt_rad: float) -> None:
        here = pose.relative_to(self._map_from_scene)
        snapped = self._snapped(here)
        x_m, y_m, z_m = habitat_to_ros_position(*snapped)  # NaN where there is no place at all
        self.check_place(here, SE2(x_m, y_m, 0.0), "PathFinder.snap_point")
        if z_m - self._floor_m > _PLACED_Z_M:
            raise InvalidStart(
                f"{self.name}: PathFinder.snap_point puts the robot at ({here.x_m:.2f}, {here.y_m:.2f}) on something "
                f"{z_m - self._floor_m:.2f} m high",
                "check that the simulator's scene is the log's, and name its floor with --twin-arg floor_m=...",
            )
        self._put_body(snapped, here.yaw_rad)
        self._tilt_rad = tilt_rad

    def _snapped(self, here: SE2) -> NDArray[np.float64]:
        """The place of the navigation mesh nearest to one on the floor, both in the scene; NaN for none."""
        wanted = np.array(ros_to_habitat_position(here.x_m, here.y_m, self._floor_m), np.float32)
        with self._calling("PathFinder.snap_point"):
            return np.asarray(self._simulator.pathfinder.snap_point(wanted), np.float64)

    def robot_state(self) -> tuple[SE2, float]:
        state = self._agent.get_state()
        x_m, y_m, _ = habitat_to_ros_position(*map(float, state.position))
        return self._map_from_scene @ SE2(x_m, y_m, _yaw_rad(state)), self._tilt_rad

    def move(self, action: Action) -> bool:
        if action in _NAMES:
            with self._calling("Agent.act"):
                return bool(self._agent.act(_NAMES[action]))
        # habitat-sim rotates sensors to look up and down, as its agent has no head; draw() does the same.
        self._tilt_rad = self._clamped(self._tilt_rad + self.task.magnitudes.displacement(action).tilt_rad)
        return False

    def drive(self, command: TimedAction) -> bool:
        """Move to the end of the arc, as far as the navigation mesh allows, as habitat-lab's velocity control."""
        state = self._agent.get_state()
        asked = command.displacement
        ahead = SE2(0.0, 0.0, _yaw_rad(state)) @ SE2.arc(asked.forward_m, asked.turn_rad)
        start = np.asarray(state.position, np.float32)
        end = start + np.array(ros_to_habitat_position(ahead.x_m, ahead.y_m, 0.0), np.float32)
        with self._calling("Simulator.step_filter"):
            reached = np.asarray(self._simulator.step_filter(start, end), np.float64)
        self._put_body(reached, ahead.yaw_rad)
        self._tilt_rad = self._clamped(self._tilt_rad + asked.tilt_rad)
        return float(np.sum((reached - start) ** 2)) + 1e-5 < float(np.sum((end - start) ** 2))

    def draw(self, camera: PinholeCamera, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        if camera != self._drawn:
            self._open(camera, self._scene)
        library, state = self._library, self._agent.get_state()
        position, rotation = self._in_habitat(map_from_camera)
        with self._calling("Simulator.get_sensor_observations"):
            # 0.2.2 takes no array here.
            eye = library.SixDOFPose(position, library.utils.common.quat_from_coeffs(rotation))
            state = library.AgentState(state.position, state.rotation, {_COLOR: eye, _DEPTH: eye})
            self._agent.set_state(state, infer_sensor_states=False)
            seen = self._simulator.get_sensor_observations()
            rgb = np.asarray(seen[_COLOR])[:, :, :3].astype(np.uint8, copy=False)
            return rgb, np.asarray(seen[_DEPTH], np.float32).reshape(camera.height, camera.width)

    def close(self) -> None:
        self._shut()
        self._made.cleanup()

    @property
    def _agent(self) -> Any:
        return self._simulator.get_agent(0)

    def _clamped(self, tilt_rad: float) -> float:
        """A tilt within the task's range, where it has one."""
        if self.task.control is None:
            return wrap_angle(tilt_rad)
        lowest_rad, highest_rad = self.task.control.tilt_range_rad
        return min(max(tilt_rad, lowest_rad), highest_rad)

    def _put_body(self, position: NDArray[np.float64], yaw_rad: float) -> None:
        rotation = np.array(yaw_to_habitat_quaternion(yaw_rad))
        with self._calling("Agent.set_state"):
            self._agent.set_state(self._library.AgentState(position.astype(np.float32), rotation))

    @contextmanager
    def _calling(self, call: str) -> Iterator[None]:
        """Calls of the library, whose exceptions become ``SimulatorFailed``."""
        try:
            yield
        except RuntimeFault:
            raise
        except Exception as error:
            raise SimulatorFailed(
                f"{self.name}: {call}: {type(error).__name__}: {error}",
                "use one of the versions 0.2.2 to 0.3.4, or replay it into sim",
            ) from error

    def _in_habitat(self, map_from_camera: Pose3) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Position and rotation (x, y, z, w) of a sensor that looks along its -z with y up."""
        c, s = math.cos(self._map_from_scene.yaw_rad), math.sin(self._map_from_scene.yaw_rad)
        scene_from_map = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        origin = (self._map_from_scene.x_m, self._map_from_scene.y_m, -self._floor_m)
        position = _AXES @ scene_from_map @ (map_from_camera[:3, 3] - origin)
        axes = _AXES @ scene_from_map @ map_from_camera[:3, :3] * (1, -1, -1)
        return position.astype(np.float32), np.asarray(Rotation.from_matrix(axes).as_quat())

    # --- the simulator ----------------------------------------------------------------------------------------------

    def _open(self, camera: PinholeCamera | None, scene: str) -> None:
        """Start the simulator in a scene, with sensors for a camera; the agent keeps its pose."""
        state = None if self._simulator is None else self._agent.get_state()
        self._shut()
        library, options = self._library, self._options
        with self._calling("SimulatorConfiguration"):
            backend = library.SimulatorConfiguration()
            backend.scene_id = scene
            backend.allow_sliding = options.allow_sliding
            backend.gpu_device_id = options.gpu
            if options.dataset is not None:
                backend.scene_dataset_config_file = options.dataset
            agent = library.AgentConfiguration(
                height=self.task.camera.height_m,
                radius=self.task.robot_radius_m,
                sensor_specifications=self._sensors(camera or _ANY_CAMERA),
                action_space=self._actions(),
            )
        try:
            self._simulator = library.Simulator(library.Configuration(backend, [agent]))
        except Exception as error:
            raise SceneError(
                f"{self._where}: {self.name}: Simulator: cannot open {scene}: {type(error).__name__}: {error}",
                "name the scene's file with --twin-arg scene=...; its output says more",
            ) from error
        self._drawn = camera
        self._load_navmesh(scene)
        if state is not None:
            self._agent.set_state(library.AgentState(state.position, state.rotation))

    def _shut(self) -> None:
        simulator, self._simulator = self._simulator, None
        if simulator is not None:
            simulator.close()

    def _sensors(self, camera: PinholeCamera) -> list[Any]:
        library, kinds = self._library, {_COLOR: "COLOR", _DEPTH: "DEPTH"}
        specifications = []
        for uuid, kind in kinds.items():
            specification = library.CameraSensorSpec()
            specification.uuid = uuid
            specification.sensor_type = getattr(library.SensorType, kind)
            specification.sensor_subtype = library.SensorSubType.PINHOLE
            specification.resolution = [camera.height, camera.width]
            specification.hfov = camera.hfov_deg
            specification.position = [0.0, 0.0, 0.0]
            if kind == "DEPTH":
                specification.channels = 1
            specifications.append(specification)
        return specifications

    def _actions(self) -> dict[str, Any]:
        library, magnitudes = self._library, self.task.magnitudes
        amounts = {
            Action.MOVE_FORWARD: magnitudes.forward_m,
            Action.TURN_LEFT: magnitudes.turn_deg,
            Action.TURN_RIGHT: magnitudes.turn_deg,
        }
        return {
            name: library.ActionSpec(name, library.ActuationSpec(amounts[action])) for action, name in _NAMES.items()
        }

    def _load_navmesh(self, scene: str) -> None:
        """Load a navigation mesh, or compute it once; without one, habitat-sim's agent passes through walls."""
        simulator, path = self._simulator, self._navmesh
        pathfinder = simulator.pathfinder
        with self._calling("PathFinder.load_nav_mesh"):
            found = pathfinder.is_loaded if path is None else pathfinder.load_nav_mesh(path)
        if path is not None and not found:
            raise SceneError(
                f"{self.name}: PathFinder.load_nav_mesh: {path}: not a navigation mesh",
                "compute it again with habitat-sim",
            )
        if not found:
            with self._calling("Simulator.recompute_navmesh"):
                settings = self._navmesh_settings()
                self._cells = Effective.of(settings)
                found = simulator.recompute_navmesh(pathfinder, settings)
        with self._calling("PathFinder.save_nav_mesh"):
            if not (found and pathfinder.navigable_area > 0):
                raise SceneError(
                    f"{self._where}: {self.name}: Simulator.recompute_navmesh: finds no navigable floor in {scene}",
                    "check the scene's file, and what points up in it: --twin-arg up=y or up=z",
                )
            if path is None:
                self._navmesh = str(Path(self._made.name) / "found.navmesh")
                pathfinder.save_nav_mesh(self._navmesh)

    def _navmesh_settings(self) -> Any:
        settings, task = self._library.NavMeshSettings(), self.task
        settings.set_defaults()
        if self._options.navmesh_defaults:
            settings.agent_radius, settings.agent_height = task.robot_radius_m, task.camera.height_m
        else:
            ask(settings, task.robot_radius_m, task.camera.height_m, self._options.climb_m)
        return settings


def _yaw_rad(state: Any) -> float:
    turned = state.rotation
    return habitat_quaternion_to_yaw(turned.x, turned.y, turned.z, turned.w)


def _scene_files(
    header: EpisodeHeader, scene: Scene | None, options: HabitatOptions, folder: Path, where: str
) -> tuple[str, str, float]:
    """The file that habitat-sim draws, the one that it finds its floor in, and the height of the floor in both.

    A scene's meshes are written to ``folder``, for the floor with what is transparent.

    Raises:
        ConfigError: there is no such file.
        SceneError: the meshes cannot be written, or the scene would lie on its side.
    """
    for name in ("dataset", "navmesh"):
        path = getattr(options, name)
        if path is not None and not Path(path).is_file():
            raise ConfigError(f"{where}: {name}: there is no file {path!r}", "correct the path")
    if options.scene is None and scene is not None and any(asset.visual for asset in scene.file.assets):
        written = export_scene(scene, folder)
        return str(written[0]), str(written[-1]), 0.0
    named = options.scene or header.episode.scene
    if options.dataset is None:
        if not Path(named).is_file():
            raise ConfigError(
                f"{where}: there is no file {named!r}, which habitat-sim is to open",
                "name the scene with --twin-arg scene=FILE.glb, or its dataset with --twin-arg dataset=FILE.json",
            )
        named = str(stated(Path(named), options.up, folder))
    return named, named, header.episode.start_z_m
