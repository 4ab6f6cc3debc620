"""Habitat ``Simulator`` over any robot of this package.

>>> import sim_bridge.habitat.simulator                       # registers it; with or without habitat-sim
>>> env = habitat.Env(habitat.get_config("my_evaluation.yaml"))

where ``my_evaluation.yaml`` is a configuration of habitat-lab's with ``- /habitat/simulator: robot_runtime`` among its
defaults (``sim_bridge.habitat.config.RobotRuntimeConfig``). ``habitat.Env``, its sensors and measures and
``habitat.Benchmark`` are unchanged: an action is executed by motion control and Guard, observed at rest, logged and
scored as ``robot-runtime run`` does it; distances are those of the scene's map. A robot is not teleported, so images
from elsewhere (``ImageGoalSensor``) and moved agents (``TeleportAction``) are not supported.

habitat-lab's ``LookUpAction`` and ``LookDownAction`` move habitat-sim's cameras. Those of this module have the same
names and tilt the robot's head; for other simulators they call habitat-lab's.
"""

from __future__ import annotations

import sim_bridge.habitat.import_shim  # noqa: F401  # first: it makes the others importable

# isort: split
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import quaternion
from gym import spaces
from habitat.core.registry import registry
from habitat.core.simulator import AgentState, DepthSensor, Observations, RGBSensor, Sensor, SensorSuite, Simulator
from habitat.sims.habitat_simulator.actions import HabitatSimActions
from habitat.tasks.nav import nav
from numpy.typing import NDArray

from robot_runtime.actions.discrete import HABITAT
from robot_runtime.common.geometry import (
    SE2,
    habitat_to_ros_position,
    ros_to_habitat_position,
    yaw_to_habitat_quaternion,
)
from robot_runtime.env import MAP_FRAME, Env
from robot_runtime.errors import ConfigError
from robot_runtime.hal import PoseEstimate
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import Subscriber
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import find_scene, load_scene
from sim_bridge.habitat.config import SIMULATOR, camera_sensors, episode_of, task_of


class _Rgb(RGBSensor):  # type: ignore[misc]  # habitat-lab has no types where it is not installed
    def _get_observation_space(self, *_: Any, **__: Any) -> spaces.Box:
        return spaces.Box(0, 255, (self.config.height, self.config.width, 3), np.uint8)

    def get_observation(self, seen: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
        return np.array(seen["rgb"])


class _Depth(DepthSensor):  # type: ignore[misc]
    def _get_observation_space(self, *_: Any, **__: Any) -> spaces.Box:
        config = self.config
        low, high = (0.0, 1.0) if config.normalize_depth else (config.min_depth, config.max_depth)
        return spaces.Box(low, high, (config.height, config.width, 1), np.float32)

    def get_observation(self, seen: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        return np.array(seen["depth"])


_SENSORS: dict[str, type[Sensor]] = {"HabitatSimRGBSensor": _Rgb, "HabitatSimDepthSensor": _Depth}


@registry.register_simulator(name=SIMULATOR)
class RobotSimulator(Simulator):  # type: ignore[misc]
    """The simulator that ``habitat.Env`` makes; connected until :meth:`close`.

    Raises:
        ConfigError: see ``sim_bridge.habitat.config``, ``load_robot`` and ``Env``.
        DeviceFault: the robot cannot be connected; and from ``step``, as ``Env.step`` raises it.
    """

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.habitat_config = config
        self._sensor_suite = SensorSuite(_SENSORS[sensor.type](config=sensor) for sensor in camera_sensors(config))
        self._task = task_of(config)
        self._scene = load_scene(find_scene(config.robot_scene))
        self._geodesic = GeodesicMap(self._scene.map, self._task.robot_radius_m)
        if config.pose not in ("localizer", "referee"):
            raise ConfigError(f"habitat.simulator.pose is {config.pose!r}", "use localizer or referee")
        self._seed = int(config.seed)
        self._start = self._to_map = SE2()
        context = RobotContext(self._scene, self._task.camera, self._seed, config.real_time)
        with ExitStack() as stack:
            robot = stack.enter_context(load_robot(config.robot, context))
            subscribers: list[Subscriber] = []
            if config.logs:
                recorder = Recorder(Path(config.logs))
                stack.callback(recorder.close)
                subscribers.append(recorder)
            self.env = stack.enter_context(Env(robot, self._task, self._scene, subscribers, seed=self._seed))
            self._open = stack.pop_all()

    # --- what habitat-lab calls -------------------------------------------------------------------------------------

    @property
    def sensor_suite(self) -> SensorSuite:
        return self._sensor_suite

    @property
    def action_space(self) -> spaces.Discrete:
        return spaces.Discrete(len(HABITAT.actions))

    @property
    def previous_step_collided(self) -> bool:
        """Whether the last step collided. A property, because ``Collisions`` reads it without a call."""
        result = self.env.record.result
        return result is not None and result.collided

    def reconfigure(self, config: Any, episode: Any | None = None) -> None:
        """Bring the robot to the episode's start; an episode in progress is interrupted."""
        if episode is None:
            raise ConfigError("a robot is brought to the start of an episode, and there is none", "give a dataset")
        own = episode_of(episode)
        self.env.reset(own, self.habitat_config.agent_name, self._seed)
        pose = self._estimate()
        self._to_map = SE2() if pose.frame == MAP_FRAME else own.start @ pose.pose.inverse()

    def reset(self) -> Observations:
        """The observations at the start, to which :meth:`reconfigure` has brought the robot."""
        return self._observed()

    def step(self, action: int | None, *_: Any, **__: Any) -> Observations:
        """Execute one of ``HabitatSimActions``; None repeats the last observations without moving."""
        if action is not None:
            self.env.step(HABITAT.parse(action))
        return self._observed()

    def step_physics(self, delta: float) -> None:
        """Do nothing, because time on a robot passes by itself."""

    def seed(self, seed: int) -> None:
        """Set the seed in the logs; ``habitat.simulator.seed`` seeds the noise when the robot is made."""
        self._seed = seed

    def render(self, mode: str = "rgb") -> NDArray[np.uint8]:
        """The last color image."""
        return np.array(self.env.record.frame.rgb)

    def close(self, destroy: bool = True) -> None:
        """End the episode and release the robot."""
        self._open.close()

    def get_agent_state(self, agent_id: int = 0) -> AgentState:
        """The robot's pose at the last observation."""
        pose = self._to_map @ self._estimate().pose
        x, y, z, w = yaw_to_habitat_quaternion(pose.yaw_rad)
        return AgentState(self._position(pose.x_m, pose.y_m), quaternion.quaternion(w, x, y, z))

    def geodesic_distance(self, position_a: Sequence[float], position_b: Any, episode: Any | None = None) -> float:
        """Distance on the scene's map to the nearest of the points; inf if none can be reached. Heights are ignored."""
        points = np.atleast_2d(np.asarray(position_b, np.float64))
        return self._geodesic.distance(*_planar(position_a), [_planar(point) for point in points])

    def get_straight_shortest_path_points(
        self, position_a: Sequence[float], position_b: Sequence[float]
    ) -> list[NDArray[np.float32]]:
        """Corners of the shortest path, both ends included; empty if there is none."""
        path = self._geodesic.field([_planar(position_b)]).path(*_planar(position_a))
        return [self._position(x_m, y_m) for x_m, y_m in path]

    def is_navigable(self, point: Sequence[float]) -> bool:
        return self._geodesic.is_navigable(*_planar(point))

    def sample_navigable_point(self) -> list[float]:
        """A point where the robot fits, drawn with ``numpy.random``, as habitat-lab seeds it."""
        cells = np.argwhere(self._geodesic.navigable)
        row, column = cells[np.random.randint(len(cells))]
        return [float(value) for value in self._position(*self._scene.map.to_point(int(row), int(column)))]

    def distance_to_closest_obstacle(self, position: Sequence[float], max_search_radius: float = 2.0) -> float:
        """Distance from the robot's rim at a position, at most ``max_search_radius``."""
        return self._scene.map.proximity_m(*_planar(position), self._task.robot_radius_m, max_search_radius)

    @property
    def up_vector(self) -> NDArray[np.float64]:
        return np.array([0.0, 1.0, 0.0])

    @property
    def forward_vector(self) -> NDArray[np.float64]:
        return np.array([0.0, 0.0, -1.0])

    # --- own --------------------------------------------------------------------------------------------------------

    def check_tilt(self, tilt_deg: float) -> None:
        """Check the angle of looks. Raises ``ConfigError`` if it is not the task's."""
        own_deg = self._task.magnitudes.tilt_deg
        if tilt_deg != own_deg:
            raise ConfigError(
                f"a look turns by {tilt_deg}° in habitat-lab's configuration, by {own_deg:g}° in robot_task "
                f"{self._task.name!r}",
                "set habitat.task.actions.look_up.tilt_angle and look_down's, or choose another robot_task",
            )

    def _estimate(self) -> PoseEstimate:
        record = self.env.record
        return record.pose if self.habitat_config.pose == "localizer" else record.referee

    def _position(self, x_m: float, y_m: float) -> NDArray[np.float32]:
        return np.array(ros_to_habitat_position(x_m, y_m, self.env.episode.start_z_m), np.float32)

    def _observed(self) -> Observations:
        return self._sensor_suite.get_observations(self.env.record.observation)


class _Look(nav.NavigationMovementAgentAction):  # type: ignore[misc]
    """A look of a robot; of any other simulator, habitat-lab's."""

    def __init__(self, *args: Any, config: Any, sim: Simulator, **kwargs: Any) -> None:
        super().__init__(*args, config=config, sim=sim, **kwargs)
        if isinstance(sim, RobotSimulator):
            sim.check_tilt(config.tilt_angle)


@registry.register_task_action
class LookUpAction(_Look, nav.LookUpAction):  # type: ignore[misc]
    """A look up."""

    def step(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self._sim, RobotSimulator):
            return self._sim.step(HabitatSimActions.look_up)
        return super().step(*args, **kwargs)


@registry.register_task_action
class LookDownAction(_Look, nav.LookDownAction):  # type: ignore[misc]
    """A look down."""

    def step(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self._sim, RobotSimulator):
            return self._sim.step(HabitatSimActions.look_down)
        return super().step(*args, **kwargs)


@registry.register_task_action
class StopAction(nav.StopAction):  # type: ignore[misc]
    """habitat-lab's action, for the task's information only, and the end of the robot's episode."""

    def step(self, task: Any, *args: Any, **kwargs: Any) -> Any:
        super().step(*args, task=task, **kwargs)
        return self._sim.step(HabitatSimActions.stop) if isinstance(self._sim, RobotSimulator) else None


def _planar(position: Sequence[float]) -> tuple[float, float]:
    x_m, y_m, _ = habitat_to_ros_position(*(float(value) for value in position))
    return x_m, y_m
