"""Emulated D435 in a simulated world, behind the SDK's own interface.

The driver finds the device on a context, reads its modes and options, starts a pipeline and reads pairs, as with a real
device.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from drivers.realsense.bus import Bus
from drivers.realsense.modes import MAX_M, nominal_modes
from drivers.realsense.software_device import DEPTH_UNIT_M, SERIAL, SoftwareD435, unit_color_from_depth, unit_lens
from robot_runtime.common import config
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.quantities import Latency
from robot_runtime.hal.fault_schedule import Script, Window
from robot_runtime.hal.simulation import Simulation


class Unplugged(Window):
    """The cable is disconnected; the context loses the device."""


class Silent(Window):
    """The device is connected and delivers nothing."""


class LostColor(Window):
    """The port loses every image of the color sensor."""


class Blind(Window):
    """The stereo module finds no matches: depth images without a measurement."""


class Frozen(Window):
    """The device repeats its last images under new stamps."""


Fault = Annotated[Unplugged | Silent | LostColor | Blind | Frozen, Field(discriminator="kind")]


@dataclass(frozen=True)
class EmulatedOptions(config.Strict):
    """Behavior of the emulated device.

    Attributes:
        latency_s: time from the middle of an exposure to its arrival.
        drift_ppm: rate of its clock relative to the robot's.
        depth_noise: noise model of the simulator, with its options; empty for none.
        color_noise: color noise model of the simulator, with its options; empty for none.
        faults: emulated faults with their windows of time.
    """

    latency_s: Latency = 0.03
    drift_ppm: Annotated[float, Field(ge=-200, le=200)] = 20.0
    depth_noise: dict[str, Any] = field(default_factory=lambda: {"model": "d435"})
    color_noise: dict[str, Any] = field(default_factory=lambda: {"model": "sensor"})
    faults: tuple[Fault, ...] = ()


class EmulatedD435(Bus):
    """The device, connected to a simulation.

    Exposures are rendered only while a reader waits, because rendering takes longer than a real exposure.

    Raises:
        ConfigError: the simulator has no such noise model.
    """

    def __init__(
        self, simulation: Simulation, color: str, depth: str, rate_hz: int, options: EmulatedOptions, where: str
    ) -> None:
        self._simulation, self._options = simulation, options
        self._near_m = next(mode.min_m for mode in nominal_modes() if (mode.sensor, mode.name) == ("depth", depth))
        self._device = SoftwareD435(color, depth, rate_hz)
        self._lenses = {"color": unit_lens("color", color), "depth": unit_lens("depth", depth)}
        self._script = Script(options.faults)
        self._depth_noise = simulation.depth_noise(options.depth_noise, f"{where}: emulated.depth_noise")
        self._color_noise = simulation.color_noise(options.color_noise, f"{where}: emulated.color_noise")
        self._restart()
        simulation.on_placed(self._restart)
        self._waiting = False
        self._in_transit: deque[_Exposure] = deque()
        self._number = 0
        self._last: _Exposure | None = None
        simulation.every(rate_hz, self._expose)

    @property
    def context(self) -> Any:
        return self._device.context

    def begin_wait(self) -> None:
        self._waiting = True
        now_ns = self._simulation.clock.now_ns()
        while self._in_transit and self._in_transit[0].arrival_ns <= now_ns:
            self._deliver(self._in_transit.popleft(), now_ns)

    def end_wait(self) -> None:
        self._waiting = False

    def is_connected(self, serial: str) -> bool:
        return serial == SERIAL and not self._is_active(Unplugged, self._simulation.clock.now_ns())

    def _is_active(self, kind: type[Window], now_ns: int) -> bool:
        return bool(self._script.active(kind, now_ns))

    def _expose(self, now_ns: int) -> None:
        if not self._waiting:
            return
        self._number += 1
        arrival_ns = now_ns + seconds_to_ns(self._options.latency_s)
        if self._last is not None and self._is_active(Frozen, now_ns):
            color, depth = self._last.color, self._last.depth
        else:
            color, depth = self._render()
        if self._is_active(Blind, now_ns):
            depth = np.zeros_like(depth)
        self._last = _Exposure(self._number, now_ns, arrival_ns, color, depth)
        self._in_transit.append(self._last)

    def _render(self) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
        simulation, lenses = self._simulation, self._lenses
        map_from_color = simulation.camera_pose()
        motion = simulation.camera_motion()
        far_m = None
        if motion.still or not self._options.color_noise:
            color = simulation.render_color(lenses["color"], map_from_color)
        else:  # near surfaces blur more than far ones
            color, far_m = simulation.render(lenses["color"], map_from_color)
        color = self._color_noise.expose(color, far_m, lenses["color"], motion, self._color_random)
        depth_m = simulation.render_depth(lenses["depth"], map_from_color @ unit_color_from_depth())
        depth_m = self._depth_noise.measure(depth_m, lenses["depth"], self._depth_random)
        return color, counts(depth_m, self._near_m)

    def _restart(self) -> None:
        """Start new random streams, as every placement does."""
        self._color_random = self._simulation.random("realsense color")
        self._depth_random = self._simulation.random("realsense depth")

    def _deliver(self, exposure: _Exposure, now_ns: int) -> None:
        if self._is_active(Unplugged, now_ns) or self._is_active(Silent, now_ns):
            return
        stamp_ms = exposure.stamp_ns * (1 + self._options.drift_ppm * 1e-6) / 1e6 + _BOOTED_MS
        color = None if self._is_active(LostColor, now_ns) else exposure.color
        self._device.send(color, exposure.depth, stamp_ms, exposure.number)


_BOOTED_MS = 86_400_000.0
"""Uptime of the device at the start: one day."""


@dataclass(frozen=True)
class _Exposure:
    number: int
    stamp_ns: int
    arrival_ns: int
    color: NDArray[np.uint8]
    depth: NDArray[np.uint16]


def counts(depth_m: NDArray[np.float32], near_m: float) -> NDArray[np.uint16]:
    """Return depth in the device's units, 0 nearer than ``near_m`` or farther than ``MAX_M``."""
    inside = (depth_m >= near_m) & (depth_m <= MAX_M)
    return np.where(inside, np.rint(depth_m / DEPTH_UNIT_M), 0).astype(np.uint16)
