"""The part of habitat-sim 0.3's Python interface that a twin may use, around the synthetic flat.

Names, arguments, types and units are those of ``habitat_sim/simulator.py``, ``agent/agent.py``, ``agent/controls`` and
of the bindings (``SensorBindings.cpp``, ``SimBindings.cpp``, ``ShortestPathBindings.cpp``); everything else is refused.
Its axes are Habitat's: right-handed, y up, agents and sensors look along -z.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import flat_triangles
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NAVMESH_Y_M = 0.12
"""Navigation meshes lie a voxel or so above the floor."""


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
    cell_size = 0.05
    agent_height = 1.5
    agent_radius = 0.1

    def set_defaults(self) -> None:
        """As constructed."""


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
    """Place of the flat in the simulator's scene, and settings that a test reads or changes.

    Attributes:
        scene_from_map: x, y in metres and yaw in radians, along the ROS axes. floor_m: height of the flat's floor.
    """

    def __init__(self, scene_from_map: tuple[float, float, float] = (0, 0, 0), floor_m: float = 0.0) -> None:
        self.x_m, self.y_m, self.yaw_rad = scene_from_map
        self.floor_m = floor_m
        self.navmesh_loaded = True
        self.navmesh_settings: NavMeshSettings | None = None
        self.made: list[Configuration] = []
        self.closed = 0

    def axes(self, points: Floats) -> Floats:
        """Points of the flat's map in Habitat's axes."""
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        x, y = points[..., 0], points[..., 1]
        scene_x, scene_y = self.x_m + c * x - s * y, self.y_m + s * x + c * y
        return np.stack([-scene_y, points[..., 2] + self.floor_m, -scene_x], axis=-1)

    def in_map(self, point: Floats) -> tuple[float, float]:
        """Position of a point of Habitat's in the flat's map."""
        x, y = -point[2] - self.x_m, -point[0] - self.y_m
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        return c * x + s * y, -s * x + c * y

    def on_navmesh(self, x_m: float, y_m: float) -> Floats:
        return self.axes(np.array([x_m, y_m, NAVMESH_Y_M]))


class PathFinder:
    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def is_loaded(self) -> bool:
        return self._world.navmesh_loaded

    def load_nav_mesh(self, path: str) -> bool:
        self._world.navmesh_loaded = path.endswith(".navmesh")
        return self._world.navmesh_loaded

    def snap_point(self, point: NDArray[np.float32], island_index: int = -1) -> Floats:
        x_m, y_m = self._world.in_map(np.asarray(point, np.float64))
        if not math.hypot(x_m, y_m) < 100:
            return np.full(3, np.nan)
        places = [(dx, dy) for dx in np.arange(-0.6, 0.61, 0.05) for dy in np.arange(-0.6, 0.61, 0.05)]
        for dx, dy in sorted(places, key=lambda place: math.hypot(*place)):
            if flat_triangles.free(x_m + dx, y_m + dy):
                return self._world.on_navmesh(x_m + dx, y_m + dy)
        return self._world.on_navmesh(1.0, 1.9)


class Agent:
    def __init__(self, simulator: Simulator, config: AgentConfiguration) -> None:
        self._simulator, self._config = simulator, config
        self._state = AgentState()
        self.eyes: dict[str, SixDOFPose] = {}

    def act(self, action_id: Any) -> bool:
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
        self,
        state: AgentState,
        reset_sensors: bool = True,
        infer_sensor_states: bool = True,
        is_initial: bool = False,
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
        self.world.made.append(config)
        self.pathfinder = PathFinder(self.world)
        self._agents = [Agent(self, agent) for agent in config.agents]
        self._open = True

    def get_agent(self, agent_id: int) -> Agent:
        assert self._open
        return self._agents[agent_id]

    def step_filter(self, start_pos: Any, end_pos: Any) -> Floats:
        assert self.pathfinder.is_loaded
        start, end = (self.world.in_map(np.asarray(place, np.float64)) for place in (start_pos, end_pos))
        return self.world.on_navmesh(*flat_triangles.as_far_as_free(*start, *end))

    def recompute_navmesh(self, pathfinder: PathFinder, navmesh_settings: NavMeshSettings) -> bool:
        self.world.navmesh_settings = navmesh_settings
        self.world.navmesh_loaded = True
        return True

    def get_sensor_observations(self, agent_ids: int = 0) -> dict[str, NDArray[Any]]:
        agent = self.get_agent(agent_ids)
        seen: dict[str, NDArray[Any]] = {}
        for spec in self.config.agents[agent_ids].sensor_specifications:
            height, width = spec.resolution
            focal = width / 2 / math.tan(math.radians(spec.hfov) / 2)
            x, y = np.meshgrid(np.arange(width) + 0.5 - width / 2, np.arange(height) + 0.5 - height / 2)
            eye = agent.eyes[spec.uuid]
            rays = np.stack([x / focal, -y / focal, -np.ones(x.shape)], axis=-1) @ eye.rotation.matrix.T
            rgb, depth_m = flat_triangles.draw(self.world.axes, np.asarray(eye.position, np.float64), rays)
            alpha = np.full((height, width, 1), 255, np.uint8)
            color = spec.sensor_type is SensorType.COLOR
            assert spec.channels == (4 if color else 1)
            seen[spec.uuid] = np.concatenate([rgb, alpha], axis=-1) if color else depth_m
        return seen

    def close(self, destroy: bool = True) -> None:
        assert self._open
        self._open = False
        self.world.closed += 1


def habitat_sim(world: World) -> ModuleType:
    """A module like habitat-sim's, whose simulators all open ``world``."""
    module: Any = ModuleType("habitat_sim")
    module.__version__ = "0.3.3"
    parts: tuple[Callable[..., Any], ...] = (
        SimulatorConfiguration,
        SensorType,
        SensorSubType,
        CameraSensorSpec,
        NavMeshSettings,
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
