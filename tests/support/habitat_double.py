"""The part of habitat-sim's Python interface that a twin may use, around the synthetic flat.

Names, arguments, types and units are those of ``habitat_sim/simulator.py``, ``agent/agent.py``, ``agent/controls`` and
of the bindings (``SensorBindings.cpp``, ``SimBindings.cpp``, ``ShortestPathBindings.cpp``), 0.2.2 where it is stricter;
everything else is refused. Its axes are Habitat's: right-handed, y up, agents and sensors look along -z. Conventions
are the original's, from its source:

* a stage is turned as its configuration says, next to it or opened itself; without one, a ``.glb`` has z up and its
  front along y, another file y up and its front along -z (``StageAttributesManager.cpp``);
* Recast rounds radius and height up and climb down to whole cells, and its floor lies at least one cell above the
  lowest point (``PathFinder.cpp``); distances are three-dimensional;
* without a sensor there is no renderer, and without one no geometry to find a floor in (``simulator.py``, 0.2.2);
* a shortened step is a collision, by squares and 1e-5 m2 (``object_controls.py``), whether or not the agent slides;
* gray textures are shown in red, transparent materials opaque, and semantic images are 0 without annotations (seen).
"""

from __future__ import annotations

import enum
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import flat_triangles
import numpy as np
import synthetic
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float64]

PANE_M = 0.4
"""Depth at which a transparent material of the opened file is drawn, opaque."""


class Refusing:
    """Has the attributes of its class and no others, as a compiled class does."""

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        super().__setattr__(name, value)


class SimulatorConfiguration(Refusing):
    scene_dataset_config_file = "default"
    scene_id = ""
    random_seed = 0
    default_agent_id = 0
    gpu_device_id = 0
    allow_sliding = True
    create_renderer = True
    frustum_culling = True
    enable_physics = False
    load_semantic_mesh = True
    requires_textures = True


class SensorType(enum.Enum):
    COLOR = 1
    DEPTH = 2
    SEMANTIC = 3


class SensorSubType(enum.Enum):
    PINHOLE = 1
    ORTHOGRAPHIC = 2


class CameraSensorSpec(Refusing):
    uuid = "rgba_camera"
    sensor_type = SensorType.COLOR
    sensor_subtype = SensorSubType.PINHOLE
    position: Any = (0.0, 1.5, 0.0)
    orientation: Any = (0.0, 0.0, 0.0)
    resolution: Any = (128, 128)  # height, width
    hfov: float = 90.0
    near = 0.01
    far = 1000.0
    channels = 4


class NavMeshSettings(Refusing):
    cell_size = 0.0
    cell_height = 0.0
    agent_height = 0.0
    agent_radius = 0.0
    agent_max_climb = 0.0
    agent_max_slope = 0.0

    def set_defaults(self) -> None:
        self.cell_size, self.cell_height = 0.05, 0.2
        self.agent_height, self.agent_radius, self.agent_max_climb, self.agent_max_slope = 1.5, 0.1, 0.2, 45.0

    def cells(self, length_m: float, cell_m: float, up: bool) -> int:
        """Whole cells of a length, in single precision."""
        return int((math.ceil if up else math.floor)(np.float32(length_m) / np.float32(cell_m)))


class ShortestPath(Refusing):
    requested_start: Any = None
    requested_end: Any = None
    points: Any = ()
    geodesic_distance = math.inf


@dataclass
class ActuationSpec:
    amount: float
    constraint: float | None = None


@dataclass
class ActionSpec:
    name: str
    actuation: ActuationSpec | None = None


@dataclass(frozen=True)
class Quaternion:
    """numpy-quaternion's, as far as it is read."""

    w: float
    x: float
    y: float
    z: float

    @property
    def matrix(self) -> Floats:
        w, x, y, z = self.w, self.x, self.y, self.z
        return np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )


def _rotation(value: object) -> Quaternion:
    """habitat-sim's ``quat_from_coeffs`` takes x, y, z, w."""
    if isinstance(value, Quaternion):
        return value
    assert isinstance(value, list | tuple | np.ndarray)
    coefficients = np.asarray(value, np.float64)
    assert coefficients.shape == (4,)
    assert math.isclose(float(np.linalg.norm(coefficients)), 1.0, rel_tol=1e-4)
    x, y, z, w = coefficients
    return Quaternion(w, x, y, z)


@dataclass
class SixDOFPose:
    position: Any = field(default_factory=lambda: np.zeros(3))
    rotation: Any = field(default_factory=lambda: Quaternion(1, 0, 0, 0))

    def __post_init__(self) -> None:
        assert np.asarray(self.position).shape == (3,)
        assert np.isfinite(self.position).all()
        if isinstance(self.rotation, np.ndarray):
            raise TypeError("SixDOFPose: rotation must be a quaternion or a list")
        self.rotation = _rotation(self.rotation)


@dataclass
class AgentState:
    position: Any = field(default_factory=lambda: np.zeros(3))
    rotation: Any = field(default_factory=lambda: Quaternion(1, 0, 0, 0))
    sensor_states: dict[str, SixDOFPose] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert np.asarray(self.position).shape == (3,)
        assert np.isfinite(self.position).all()
        self.rotation = _rotation(self.rotation)


@dataclass
class AgentConfiguration:
    height: float = 1.5
    radius: float = 0.1
    sensor_specifications: list[CameraSensorSpec] = field(default_factory=list)
    action_space: dict[str, ActionSpec] = field(default_factory=dict)
    body_type: str = "cylinder"


@dataclass
class Configuration:
    sim_cfg: SimulatorConfiguration
    agents: list[AgentConfiguration]
    metadata_mediator: object | None = None
    enable_batch_renderer: bool = False


class World:
    """Place of the flat in a scene's file, and settings that a test reads or changes.

    Attributes:
        scene_from_map: x, y in meters and yaw in radians, along the ROS axes. floor_m: height of the flat's floor.
        z_up: whether z points up in files that a test only names; those with content are y-up glTF. Matterport's are.
        lowest_m: lowest point of the file below the floor.
        perch_m: height of the furniture on which ``snap_point`` puts an agent that stands in it; None for none.
        area_m2: navigable area of computed meshes; None for the flat's.
        fails: exceptions that calls raise, by name.
    """

    def __init__(self, scene_from_map: tuple[float, float, float] = (0, 0, 0), floor_m: float = 0.0) -> None:
        self.x_m, self.y_m, self.yaw_rad = scene_from_map
        self.floor_m = floor_m
        self.z_up = True
        self.lowest_m = 0.0
        self.perch_m: float | None = None
        self.area_m2: float | None = None
        self.fails: dict[str, Exception] = {}
        self.navmesh_loaded = False
        self.navmesh_settings: list[NavMeshSettings] = []
        self.made: list[Configuration] = []
        self.closed = 0

    def fail(self, call: str) -> None:
        if call in self.fails:
            raise self.fails[call]

    def placed(self, points: Floats) -> Floats:
        """Points of the flat's map in the axes that a file's contents have where it is upright."""
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        x, y = points[..., 0], points[..., 1]
        scene_x, scene_y = self.x_m + c * x - s * y, self.y_m + s * x + c * y
        return np.stack([-scene_y, points[..., 2] + self.floor_m, -scene_x], axis=-1)

    def in_map(self, point: Floats) -> tuple[float, float]:
        """Position of a point of Habitat's in the flat's map."""
        x, y = -point[2] - self.x_m, -point[0] - self.y_m
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        return c * x + s * y, -s * x + c * y


class Stage:
    """An opened file: how it is turned, and what of it is seen otherwise than written."""

    def __init__(self, world: World, name: str) -> None:
        file = Path(name)
        config = file if name.endswith(".stage_config.json") else file.with_name(f"{file.stem}.stage_config.json")
        up, front = ([0, 0, 1], [0, 1, 0]) if name.endswith(".glb") else ([0, 1, 0], [0, 0, -1])
        if config.is_file():
            stated = json.loads(config.read_text())
            asset = config.parent / stated["render_asset"]
            up, front = stated.get("up", [0, 1, 0]), stated.get("front", [0, 0, -1])
        else:
            asset = file
        document = gltf(asset)
        self.file = asset
        self.is_red = any(gray(document, image) for image in document.get("images", ()))
        materials = (item.get("pbrMetallicRoughness", {}) for item in document.get("materials", ()))
        self.has_glass = any(item.get("baseColorFactor", [1, 1, 1, 1])[3] < 1 for item in materials)
        z_up = world.z_up and not document and asset.suffix == ".glb"
        in_file = _frame((0, 0, 1), (0, 1, 0)) if z_up else np.eye(3)
        self.turn = np.linalg.inv(_frame(up, front)) @ in_file
        self._world = world

    @property
    def upright(self) -> bool:
        return bool(np.allclose(self.turn, np.eye(3)))

    def axes(self, points: Floats) -> Floats:
        """Points of the flat's map where the stage puts them, in Habitat's axes."""
        return np.asarray(self._world.placed(points) @ self.turn.T)


def _frame(up: Any, front: Any) -> Floats:
    """Rotation from upright axes, y up and front along -z, to those of a file."""
    up, back = np.array(up, float), -np.array(front, float)
    return np.stack([np.cross(up, back), up, back], axis=1)


def gltf(file: Path) -> dict[str, Any]:
    """The JSON of a GLB with its binary part under ``buffer``; empty for a file that a test only touched."""
    content = file.read_bytes() if file.is_file() else b""
    if content[:4] != b"glTF":
        return {}
    (length,) = struct.unpack("<I", content[12:16])
    document: dict[str, Any] = json.loads(content[20 : 20 + length])
    return {**document, "buffer": content[28 + length :]}


def gray(document: dict[str, Any], image: dict[str, Any]) -> bool:
    """Whether a texture has a single channel."""
    view = document["bufferViews"][image["bufferView"]]
    start = view.get("byteOffset", 0)
    with Image.open(BytesIO(document["buffer"][start : start + view["byteLength"]])) as opened:
        return opened.mode in ("L", "LA", "1", "I;16")


class PathFinder:
    def __init__(self, world: World, stage: Stage) -> None:
        self._world, self._stage = world, stage
        self._loaded = world.navmesh_loaded
        self.radius_m, self.climb_m, self.floor_m = synthetic.RADIUS_M, 0.2, 0.2

    @property
    def is_loaded(self) -> bool:
        return self._loaded

    @property
    def navigable_area(self) -> float:
        if not self._loaded:
            return 0.0
        free = _navigable(self.radius_m)
        area_m2 = float(free.sum()) * synthetic.scene().map.resolution_m ** 2
        return area_m2 if self._world.area_m2 is None else self._world.area_m2

    def build(self, settings: NavMeshSettings) -> bool:
        world = self._world
        self.radius_m = settings.cells(settings.agent_radius, settings.cell_size, True) * settings.cell_size
        self.climb_m = settings.cells(settings.agent_max_climb, settings.cell_height, False) * settings.cell_height
        levels = max(1, math.ceil(world.lowest_m / settings.cell_height - 1e-4))
        self.floor_m = levels * settings.cell_height - world.lowest_m
        self._loaded = self._stage.upright
        return self._loaded

    def load_nav_mesh(self, path: str) -> bool:
        self._world.fail("load_nav_mesh")
        content = Path(path).read_text()
        if content:
            self.radius_m, self.climb_m, self.floor_m = json.loads(content)
        self._loaded = path.endswith(".navmesh")
        return self._loaded

    def save_nav_mesh(self, path: str) -> bool:
        Path(path).write_text(json.dumps((self.radius_m, self.climb_m, self.floor_m)))
        return True

    def on_navmesh(self, x_m: float, y_m: float, height_m: float = 0.0) -> Floats:
        return self._world.placed(np.array([x_m, y_m, self.floor_m + height_m]))

    def free(self, x_m: float, y_m: float) -> bool:
        return flat_triangles.free(x_m, y_m, self.radius_m)

    def snap_point(self, point: NDArray[np.float32], island_index: int = -1) -> Floats:
        self._world.fail("snap_point")
        x_m, y_m = self._world.in_map(np.asarray(point, np.float64))
        if not math.hypot(x_m, y_m) < 100:
            return np.full(3, np.nan)
        if self._world.perch_m is not None and not self.free(x_m, y_m):
            return self.on_navmesh(x_m, y_m, self._world.perch_m)
        places = [(dx, dy) for dx in np.arange(-0.6, 0.61, 0.05) for dy in np.arange(-0.6, 0.61, 0.05)]
        for dx, dy in sorted(places, key=lambda place: math.hypot(*place)):
            if self.free(x_m + dx, y_m + dy):
                return self.on_navmesh(x_m + dx, y_m + dy)
        return self.on_navmesh(1.0, 1.9)

    def find_path(self, path: ShortestPath) -> bool:
        """A straight way between the requested points, whose distance counts heights."""
        start, end = (np.asarray(place, np.float64) for place in (path.requested_start, path.requested_end))
        path.points, path.geodesic_distance = [start, end], float(np.linalg.norm(end - start))
        return True

    def step(self, start: Floats, end: Floats, slides: bool) -> Floats:
        begun, ahead = self._world.in_map(start), self._world.in_map(end)
        reached = flat_triangles.as_far_as_free(*begun, *ahead, self.radius_m)
        if slides:
            for corner in ((ahead[0], reached[1]), (reached[0], ahead[1])):
                reached = flat_triangles.as_far_as_free(*reached, *corner, self.radius_m)
        return self.on_navmesh(*reached)


@cache
def _navigable(radius_m: float) -> NDArray[np.bool_]:
    return synthetic.scene().map.navigable(radius_m)


class Agent:
    def __init__(self, simulator: Simulator, config: AgentConfiguration) -> None:
        self._simulator, self._config = simulator, config
        self._state = AgentState()
        self.eyes: dict[str, SixDOFPose] = {}

    def act(self, action_id: Any) -> bool:
        self._simulator.world.fail("act")
        assert action_id in self._config.action_space
        spec = self._config.action_space[action_id]
        assert spec.actuation is not None
        turned = self._state.rotation.matrix
        if spec.name in ("turn_left", "turn_right"):
            yaw_rad = math.atan2(turned[0, 2], turned[2, 2])
            yaw_rad += math.radians(spec.actuation.amount) * (1 if spec.name == "turn_left" else -1)
            self._state.rotation = Quaternion(math.cos(yaw_rad / 2), 0.0, math.sin(yaw_rad / 2), 0.0)
            return False
        assert spec.name == "move_forward"
        start = np.asarray(self._state.position, np.float64)
        end = start - spec.actuation.amount * turned[:, 2]
        self._state.position = self._simulator.step_filter(start, end)
        return float(np.sum((self._state.position - start) ** 2)) + 1e-5 < float(np.sum((end - start) ** 2))

    def get_state(self) -> AgentState:
        return AgentState(self._state.position, self._state.rotation, dict(self.eyes))

    def set_state(
        self, state: AgentState, reset_sensors: bool = True, infer_sensor_states: bool = True, is_initial: bool = False
    ) -> None:
        self._state = AgentState(state.position, state.rotation)
        if not infer_sensor_states:
            assert set(state.sensor_states) <= {spec.uuid for spec in self._config.sensor_specifications}
            self.eyes = dict(state.sensor_states)


class Simulator:
    world: World

    def __init__(self, config: Configuration) -> None:
        if config.sim_cfg.scene_id.endswith("broken.glb"):
            raise RuntimeError("stage cannot be loaded")
        self.config = config
        config.sim_cfg.create_renderer = any(agent.sensor_specifications for agent in config.agents)
        self.world.made.append(config)
        self.stage = Stage(self.world, config.sim_cfg.scene_id)
        self.pathfinder = PathFinder(self.world, self.stage)
        self._agents = [Agent(self, agent) for agent in config.agents]
        self._open = True

    def get_agent(self, agent_id: int) -> Agent:
        assert self._open
        return self._agents[agent_id]

    def step_filter(self, start_pos: Any, end_pos: Any) -> Floats:
        self.world.fail("step_filter")
        assert self.pathfinder.is_loaded
        start, end = (np.asarray(place, np.float64) for place in (start_pos, end_pos))
        return self.pathfinder.step(start, end, self.config.sim_cfg.allow_sliding)

    def recompute_navmesh(self, pathfinder: PathFinder, navmesh_settings: NavMeshSettings) -> bool:
        self.world.fail("recompute_navmesh")
        if not self.config.sim_cfg.create_renderer:
            raise RuntimeError("No geometry is loaded without renderer initialization.")
        self.world.navmesh_settings.append(navmesh_settings)
        return pathfinder.build(navmesh_settings)

    def get_sensor_observations(self, agent_ids: int = 0) -> dict[str, NDArray[Any]]:
        self.world.fail("get_sensor_observations")
        agent = self.get_agent(agent_ids)
        seen: dict[str, NDArray[Any]] = {}
        for spec in self.config.agents[agent_ids].sensor_specifications:
            height, width = spec.resolution
            focal = width / 2 / math.tan(math.radians(spec.hfov) / 2)
            x, y = np.meshgrid(np.arange(width) + 0.5 - width / 2, np.arange(height) + 0.5 - height / 2)
            eye = agent.eyes[spec.uuid]
            rays = np.stack([x / focal, -y / focal, -np.ones(x.shape)], axis=-1) @ eye.rotation.matrix.T
            rgb, depth_m = flat_triangles.draw(self.stage.axes, np.asarray(eye.position, np.float64), rays)
            if self.stage.is_red:
                rgb[..., 1:] = 0
            if self.stage.has_glass:
                depth_m = np.minimum(depth_m, np.float32(PANE_M))
            alpha = np.full((height, width, 1), 255, np.uint8)
            color = spec.sensor_type is SensorType.COLOR
            if spec.sensor_type is SensorType.SEMANTIC:
                seen[spec.uuid] = np.zeros((height, width), np.uint32)
                continue
            assert spec.channels == (4 if color else 1)
            seen[spec.uuid] = np.concatenate([rgb, alpha], axis=-1) if color else depth_m
        return seen

    def close(self, destroy: bool = True) -> None:
        assert self._open
        self._open = False
        self.world.closed += 1


def habitat_sim(world: World, version: str = "0.3.3") -> ModuleType:
    """A module like habitat-sim's, whose simulators all open ``world``."""
    module: Any = ModuleType("habitat_sim")
    module.__version__ = version
    module.utils = SimpleNamespace(common=SimpleNamespace(quat_from_coeffs=_rotation))
    parts: tuple[Callable[..., Any], ...] = (
        SimulatorConfiguration,
        SensorType,
        SensorSubType,
        CameraSensorSpec,
        NavMeshSettings,
        ShortestPath,
        ActuationSpec,
        ActionSpec,
        SixDOFPose,
        AgentState,
        AgentConfiguration,
        Configuration,
    )
    for part in parts:
        setattr(module, part.__name__, part)
    module.Simulator = type("Simulator", (Simulator,), {"world": world})
    return module
