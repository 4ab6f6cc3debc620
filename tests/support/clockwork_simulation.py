"""A world that tells the time: a wall ahead whose distance and colour say at which instant they were seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import SimulatedClock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Velocity
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.printed_targets import Sheet
from robot_runtime.hal.simulation import CameraMotion, ColorNoise, DepthNoise, Pose3, Simulation, Subscription
from robot_runtime.scenes.scene import Scene

STEP_NS = 5_000_000


class Exact(DepthNoise):
    def measure(self, depth_m: NDArray[np.float32], lens: Lens, random: np.random.Generator) -> NDArray[np.float32]:
        return depth_m


class ExactColor(ColorNoise):
    def expose(
        self,
        rgb: NDArray[np.uint8],
        depth_m: NDArray[np.float32] | None,
        lens: Lens,
        motion: CameraMotion,
        random: np.random.Generator,
    ) -> NDArray[np.uint8]:
        return rgb


class OneCountMore(DepthNoise):
    """Noise that can be foretold."""

    def measure(self, depth_m: NDArray[np.float32], lens: Lens, random: np.random.Generator) -> NDArray[np.float32]:
        return depth_m + np.float32(0.001)


class ClockworkSimulation(Simulation):
    """Depth grows by one millimetre a step of 5 ms, from 1 m on; red counts the same steps.

    Attributes:
        exposures_ns: when colour was drawn.
    """

    def __init__(self, clock: SimulatedClock | None = None) -> None:
        self._clock = clock if clock is not None else SimulatedClock(STEP_NS)
        self._callbacks: list[tuple[float, Callable[[int], None]]] = []
        self.exposures_ns: list[int] = []
        self._clock.add_listener(self._on_step)

    @property
    def clock(self) -> SimulatedClock:
        return self._clock

    @property
    def scene(self) -> Scene:
        raise AssertionError("a camera needs no scene")

    @property
    def sheets(self) -> dict[str, Sheet]:
        raise AssertionError("nothing is hung up")

    def connect(self) -> None:
        pass

    def close(self) -> None:
        pass

    def pose(self) -> SE2:
        return SE2()

    def velocity(self) -> Velocity:
        return Velocity()

    def head_angles(self) -> tuple[float, float]:
        return 0.0, 0.0

    def camera_pose(self) -> Pose3:
        return np.eye(4)

    def render(self, lens: Lens, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        return self.render_color(lens, map_from_camera), self.render_depth(lens, map_from_camera)

    def render_color(self, lens: Lens, map_from_camera: Pose3) -> NDArray[np.uint8]:
        self.exposures_ns.append(self._clock.now_ns())
        rgb = np.zeros((lens.height, lens.width, 3), np.uint8)
        rgb[..., 0] = self._steps() % 256
        rgb[..., 1] = np.arange(lens.width) % 256
        return rgb

    def render_depth(self, lens: Lens, map_from_camera: Pose3) -> NDArray[np.float32]:
        return np.full((lens.height, lens.width), 1 + self._steps() / 1000, np.float32)

    def camera_motion(self) -> CameraMotion:
        return CameraMotion()

    def depth_noise(self, options: Mapping[str, Any], where: str) -> DepthNoise:
        return OneCountMore() if options == {"model": "one count more"} else Exact()

    def color_noise(self, options: Mapping[str, Any], where: str) -> ColorNoise:
        return ExactColor()

    def every(self, rate_hz: float, callback: Callable[[int], None]) -> Subscription:
        entry = (rate_hz, callback)
        self._callbacks.append(entry)
        return Subscription(lambda: self._callbacks.remove(entry))

    def on_placed(self, callback: Callable[[], None]) -> Subscription:
        return Subscription(lambda: None)

    def random(self, name: str) -> np.random.Generator:
        return np.random.default_rng(0)

    def _steps(self) -> int:
        return self._clock.now_ns() // STEP_NS

    def _on_step(self, now_ns: int) -> None:
        before_ns = now_ns - self._clock.step_ns
        for rate_hz, callback in tuple(self._callbacks):
            if int(ns_to_seconds(now_ns) * rate_hz + 1e-6) > int(ns_to_seconds(before_ns) * rate_hz + 1e-6):
                callback(now_ns)


def exposed_ns(depth: NDArray[np.uint16]) -> int:
    """Time of exposure of a depth image of this world."""
    return (int(np.median(depth)) - 1000) * STEP_NS


def settled(clock: SimulatedClock, seconds: float) -> int:
    """Let time pass; the instant afterwards."""
    clock.sleep_until(clock.now_ns() + seconds_to_ns(seconds))
    return clock.now_ns()
