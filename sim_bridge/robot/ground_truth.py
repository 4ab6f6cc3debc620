"""Ground truth of the simulated robot for emulated devices."""

import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import SimulatedClock, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics, Lens, Velocity, simulation
from robot_runtime.hal.printed_targets import draw_sheets
from sim_bridge.noise import models
from sim_bridge.physics import tags
from sim_bridge.physics.world import World
from sim_bridge.rendering import lens_renderer
from sim_bridge.rendering.renderer import SceneRenderer
from sim_bridge.robot.camera import SimCamera
from sim_bridge.robot.head import SimHead

_FIRST_VIEW = Intrinsics.from_hfov(64, 48, 60.0)
"""Intrinsics until the first lens sets its own."""


@dataclass(eq=False)
class _Ticks:
    """A callback at multiples of a period."""

    rate_hz: float
    callback: Callable[[int], None]
    number: int
    next_ns: int


class MujocoGroundTruth(simulation.Simulation):
    """The ground truth of a :class:`World` and a head.

    The clock's listener must be added after the base's.
    """

    clock: SimulatedClock

    def __init__(
        self,
        clock: SimulatedClock,
        world: World,
        head: SimHead,
        camera: SimCamera,
        chassis: simulation.SimulatedChassis,
        seed: int,
    ) -> None:
        self.clock, self.scene, self.sheets = clock, world.scene_model.scene, world.sheets
        self._world, self._head, self._camera = world, head, camera
        self._chassis = chassis
        self._seed, self._placements = seed, 0
        self._ticks: list[_Ticks] = []
        self._placed: list[Callable[[], None]] = []
        self._renderer: SceneRenderer | None = None
        self._thread = 0
        clock.add_listener(self._on_step)

    @property
    def chassis(self) -> simulation.SimulatedChassis:
        return self._chassis

    def connect(self) -> None:
        """Do nothing: the renderer is made when it is first needed."""

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def move_tags(self, poses: Mapping[int, simulation.Pose3]) -> None:
        """Move AprilTags of the room, by id, visibly after the next step.

        Raises:
            ConfigError: no tag of that id hangs there.
        """
        tags.move_tags(self._world.scene_model.model, self._world.data, poses)

    def pose(self) -> SE2:
        return self._world.pose

    def velocity(self) -> Velocity:
        return Velocity(*self._world.velocity)

    def head_angles(self) -> tuple[float, float]:
        return self._head.camera_angles(self.clock.now_ns())

    def camera_pose(self) -> simulation.Pose3:
        return self._camera.pose()

    def camera_motion(self) -> simulation.CameraMotion:
        return self._camera.motion()

    def depth_noise(self, options: Mapping[str, Any], where: str) -> simulation.DepthNoise:
        return models.depth_noise(options, where)

    def color_noise(self, options: Mapping[str, Any], where: str) -> simulation.ColorNoise:
        return models.color_noise(options, where)

    def render(self, lens: Lens, map_from_camera: simulation.Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        rgb, depth_m = lens_renderer.render(self._drawing(), lens, map_from_camera)
        assert rgb is not None
        assert depth_m is not None
        if self.sheets:
            draw_sheets(self.sheets.values(), lens_renderer.pixel_rays(lens), map_from_camera, rgb, depth_m)
        return rgb, depth_m

    def render_color(self, lens: Lens, map_from_camera: simulation.Pose3) -> NDArray[np.uint8]:
        if self.sheets:
            return self.render(lens, map_from_camera)[0]
        rgb, _ = lens_renderer.render(self._drawing(), lens, map_from_camera, depth=False)
        assert rgb is not None
        return rgb

    def render_depth(self, lens: Lens, map_from_camera: simulation.Pose3) -> NDArray[np.float32]:
        if self.sheets:
            return self.render(lens, map_from_camera)[1]
        _, depth_m = lens_renderer.render(self._drawing(), lens, map_from_camera, color=False)
        assert depth_m is not None
        return depth_m

    def every(self, rate_hz: float, callback: Callable[[int], None]) -> simulation.Subscription:
        fastest_hz = 1e9 / self.clock.step_ns
        if not 0 < rate_hz <= fastest_hz:
            raise ValueError(
                f"rate_hz must lie above 0 and not above the simulation's {fastest_hz:g} Hz, got {rate_hz}"
            )
        ticks = _Ticks(rate_hz, callback, 0, 0)
        self._advance(ticks, self.clock.now_ns())
        self._ticks.append(ticks)
        return simulation.Subscription(lambda: self._ticks.remove(ticks))

    def on_placed(self, callback: Callable[[], None]) -> simulation.Subscription:
        entry = callback
        self._placed.append(entry)
        return simulation.Subscription(lambda: self._placed.remove(entry))

    def random(self, name: str) -> np.random.Generator:
        return np.random.default_rng((self._seed, self._placements, zlib.crc32(name.encode())))

    def reseed(self, seed: int) -> None:
        """Draw errors, from the next placement on, as a new simulation with this seed would."""
        self._seed, self._placements = seed, 0

    def placed(self) -> None:
        """Notify the devices that the robot was placed."""
        self._placements += 1
        for callback in tuple(self._placed):
            callback()

    def _on_step(self, now_ns: int) -> None:
        for ticks in tuple(self._ticks):
            # An earlier callback of this step may have closed the subscription.
            if now_ns >= ticks.next_ns and ticks in self._ticks:
                self._advance(ticks, now_ns)
                ticks.callback(now_ns)

    @staticmethod
    def _advance(ticks: _Ticks, now_ns: int) -> None:
        ticks.number = max(ticks.number, int(now_ns / 1e9 * ticks.rate_hz) - 1)
        while ticks.next_ns <= now_ns:
            ticks.number += 1
            ticks.next_ns = seconds_to_ns(ticks.number / ticks.rate_hz)

    def _drawing(self) -> SceneRenderer:
        if self._renderer is None:
            self._renderer = SceneRenderer(self._world.scene_model, _FIRST_VIEW)
            self._thread = threading.get_ident()
        elif threading.get_ident() != self._thread:
            raise DeviceFault(
                "simulation: drawn outside the thread that drew first, where its OpenGL context lives",
                "draw in the thread in which the clock is slept on",
            )
        self._renderer.update_scene(self._world.data)
        return self._renderer
