"""A D435 on the other end of the wire: the SDK's own ``software_device``, looking into the simulated world.

The driver cannot tell: it finds the device on a context, asks it for its modes and options, starts a pipeline on it and
takes pairs off that. What the SDK wants from a software device, seen of version 2.59.1:

* The context forgets a device that nobody else holds: the list that the device callback is handed is kept.
* A frame without ``actual_fps`` is paired with nothing: the syncer guesses a rate of 1 to 3 Hz.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from drivers.realsense.bus import Bus
from drivers.realsense.modes import MAX_M, nominal_lens, nominal_modes
from drivers.realsense.sdk import rs
from robot_runtime import config
from robot_runtime.clock import seconds_to_ns
from robot_runtime.faults import Script, Window
from robot_runtime.imaging.lens import Lens
from robot_runtime.imaging.source import Sensor
from robot_runtime.simulation import Simulation

NAME = "Intel RealSense D435"
SERIAL = "SIM000000435"
DEPTH_UNIT_M = 0.001

_FOCAL = {"color": 1.004, "depth": 0.993}
_CENTER = {"color": (3.4, -2.1), "depth": (-1.7, 0.9)}
"""How this unit departs from the nominal one, pixels at 720 lines: whoever uses nominal values is off."""

_COLOR_FROM_DEPTH = np.array(
    [
        [0.99999, 0.0012, -0.0043, 0.0148],
        [-0.0012, 1.0, 0.0021, 0.0002],
        [0.0043, -0.0021, 0.99999, 0.0003],
        [0, 0, 0, 1],
    ]
)

_RATES = {"color": (6, 15, 30, 60), "depth": (6, 15, 30, 60, 90)}

_OPTIONS: dict[Sensor, dict[str, tuple[float, float, float, float]]] = {
    "color": {
        "enable_auto_exposure": (0, 1, 1, 1),
        "exposure": (1, 10000, 1, 156),
        "gain": (0, 128, 1, 64),
        "enable_auto_white_balance": (0, 1, 1, 1),
        "white_balance": (2800, 6500, 10, 4600),
    },
    "depth": {
        "visual_preset": (0, 5, 1, 0),
        "emitter_enabled": (0, 2, 1, 1),
        "laser_power": (0, 360, 30, 150),
        "enable_auto_exposure": (0, 1, 1, 1),
        "exposure": (1, 165000, 1, 8500),
        "gain": (16, 248, 1, 16),
    },
}
"""Least, most, step and default, as a D435 reports them."""


@dataclass(frozen=True)
class Unplugged(Window):
    """The cable is pulled; a context forgets the device."""

    kind: Literal["unplugged"] = "unplugged"


@dataclass(frozen=True)
class Silent(Window):
    """The device is there and delivers nothing."""

    kind: Literal["silent"] = "silent"


@dataclass(frozen=True)
class LostColor(Window):
    """The port loses every image of the colour sensor."""

    kind: Literal["lost_color"] = "lost_color"


@dataclass(frozen=True)
class Blind(Window):
    """The stereo module finds nothing that matches: depth images without a measurement."""

    kind: Literal["blind"] = "blind"


@dataclass(frozen=True)
class Frozen(Window):
    """The device repeats its last images under new stamps."""

    kind: Literal["frozen"] = "frozen"


Fault = Annotated[Unplugged | Silent | LostColor | Blind | Frozen, Field(discriminator="kind")]


@dataclass(frozen=True)
class EmulatedOptions:
    """How the device behaves that a simulated robot gets.

    Attributes:
        latency_s: from the middle of an exposure to its arrival.
        drift_ppm: how much faster than the robot's its clock goes.
        depth_noise, color_noise: models of the simulator, with their options; empty: exact.
        faults: what goes wrong, and when.
    """

    latency_s: Annotated[float, Field(ge=0, le=1)] = 0.03
    drift_ppm: Annotated[float, Field(ge=-200, le=200)] = 20.0
    depth_noise: dict[str, Any] = field(default_factory=dict)
    color_noise: dict[str, Any] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    __pydantic_config__ = config.STRICT


def unit_lens(sensor: Sensor, name: str) -> Lens:
    """This unit's lens in a mode."""
    nominal = nominal_lens(sensor, name)
    scale = nominal.height / 720
    x, y = _CENTER[sensor]
    f = nominal.fx * _FOCAL[sensor]
    return Lens(nominal.width, nominal.height, f, f, nominal.cx + x * scale, nominal.cy + y * scale)


def unit_color_from_depth() -> NDArray[np.float64]:
    """Where this unit's sensors sit to each other, float64 (4, 4)."""
    left, _, right = np.linalg.svd(_COLOR_FROM_DEPTH[:3, :3])
    matrix = _COLOR_FROM_DEPTH.copy()
    matrix[:3, :3] = left @ right
    return np.asarray(matrix)


class EmulatedD435(Bus):
    """The device, plugged into a simulation.

    An exposure is drawn only if somebody listens: one takes longer to draw than a real camera takes to make it.

    Args:
        color, depth: names of the modes that are used. rate_hz: of exposures.
        where: file and field of the options, for messages.

    Raises:
        ConfigError: the simulator has no such noise.
    """

    def __init__(
        self, simulation: Simulation, color: str, depth: str, rate_hz: int, options: EmulatedOptions, where: str
    ) -> None:
        self._simulation, self._options = simulation, options
        self._period_ns = seconds_to_ns(1 / rate_hz)
        self._near_m = next(mode.min_m for mode in nominal_modes() if (mode.sensor, mode.name) == ("depth", depth))
        self._device = rs.software_device()
        for name, value in (
            ("name", NAME),
            ("serial_number", SERIAL),
            ("product_line", "D400"),
            ("product_id", "0B07"),
            ("firmware_version", "5.16.0.1"),
            ("usb_type_descriptor", "3.2"),
        ):
            self._device.register_info(getattr(rs.camera_info, name), value)
        self._sensors = {kind: _Sensor(self._device, kind) for kind in ("depth", "color")}
        _link(self._sensors["depth"], self._sensors["color"])
        self._device.create_matcher(rs.matchers.dlr_c)
        self._lenses = {"color": unit_lens("color", color), "depth": unit_lens("depth", depth)}
        self._used = {"color": (color, rate_hz), "depth": (depth, rate_hz)}
        self._held: list[Any] = []
        self._context = rs.context()
        self._context.set_devices_changed_callback(lambda change: self._held.append(change.get_new_devices()))
        self._device.add_to(self._context)
        self._script = Script(options.faults)
        self._depth_noise = self._color_noise = None
        if options.depth_noise:
            self._depth_noise = simulation.depth_noise(options.depth_noise, f"{where}: emulated.depth_noise")
        if options.color_noise:
            self._color_noise = simulation.color_noise(options.color_noise, f"{where}: emulated.color_noise")
        self._restart()
        simulation.on_placed(self._restart)
        self._listened_ns = -self._period_ns
        self._under_way: deque[_Exposure] = deque()
        self._number = 0
        self._last: _Exposure | None = None
        simulation.every(rate_hz, self._expose)

    @property
    def context(self) -> Any:
        return self._context

    def listen(self) -> None:
        now_ns = self._simulation.clock.now_ns()
        self._listened_ns = now_ns
        while self._under_way and self._under_way[0].arrival_ns <= now_ns:
            self._deliver(self._under_way.popleft(), now_ns)

    def has(self, serial: str) -> bool:
        return serial == SERIAL and not self._happens(Unplugged, self._simulation.clock.now_ns())

    def _happens(self, kind: type[Window], now_ns: int) -> bool:
        return bool(self._script.active(kind, now_ns))

    def _expose(self, now_ns: int) -> None:
        # A look at this very instant comes after the clock's listeners, so the one before counts.
        if now_ns - self._listened_ns > self._period_ns:
            return
        self._number += 1
        arrival_ns = now_ns + seconds_to_ns(self._options.latency_s)
        if self._last is not None and self._happens(Frozen, now_ns):
            color, depth = self._last.color, self._last.depth
        else:
            color, depth = self._see()
        if self._happens(Blind, now_ns):
            depth = np.zeros_like(depth)
        self._last = _Exposure(self._number, now_ns, arrival_ns, color, depth)
        self._under_way.append(self._last)

    def _see(self) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
        simulation, lenses = self._simulation, self._lenses
        map_from_color = simulation.camera_pose()
        if self._color_noise is None:
            color = simulation.render_color(lenses["color"], map_from_color)
        else:
            color, far_m = simulation.render(lenses["color"], map_from_color)
            motion = simulation.camera_motion()
            color = self._color_noise.expose(color, far_m, lenses["color"], motion, self._color_random)
        depth_m = simulation.render_depth(lenses["depth"], map_from_color @ unit_color_from_depth())
        if self._depth_noise is not None:
            depth_m = self._depth_noise.measure(depth_m, lenses["depth"], self._depth_random)
        return color, counts(depth_m, self._near_m)

    def _restart(self) -> None:
        """Each placement has a sequence of errors of its own."""
        self._color_random = self._simulation.random("realsense color")
        self._depth_random = self._simulation.random("realsense depth")

    def _deliver(self, exposure: _Exposure, now_ns: int) -> None:
        if self._happens(Unplugged, now_ns) or self._happens(Silent, now_ns):
            return
        stamp_ms = exposure.stamp_ns * (1 + self._options.drift_ppm * 1e-6) / 1e6 + _BOOTED_MS
        self._sensors["depth"].send(self._used["depth"], exposure.depth, stamp_ms, exposure.number)
        if not self._happens(LostColor, now_ns):
            self._sensors["color"].send(self._used["color"], exposure.color, stamp_ms, exposure.number)


_BOOTED_MS = 86_400_000.0
"""The device has been on for a day: its clock is not the robot's."""


@dataclass(frozen=True)
class _Exposure:
    number: int
    stamp_ns: int
    arrival_ns: int
    color: NDArray[np.uint8]
    depth: NDArray[np.uint16]


class _Sensor:
    """One of the device's sensors, with all its modes and options."""

    def __init__(self, device: Any, kind: Sensor) -> None:
        self._kind = kind
        self._sensor = device.add_sensor("Stereo Module" if kind == "depth" else "RGB Camera")
        self.profiles: dict[tuple[str, int], Any] = {}
        for mode in nominal_modes():
            if mode.sensor != kind:
                continue
            for rate_hz in _RATES[kind]:
                if rate_hz <= mode.rate_hz:
                    stream = _stream(kind, mode.name, rate_hz, len(self.profiles) + (100 if kind == "color" else 1))
                    self.profiles[mode.name, rate_hz] = self._sensor.add_video_stream(stream)
        for name, (least, most, step, default) in _OPTIONS[kind].items():
            reach = rs.option_range()
            reach.min, reach.max, reach.step, reach.default = least, most, step, default
            self._sensor.add_option(getattr(rs.option, name), reach, True)
        if kind == "depth":
            self._sensor.add_read_only_option(rs.option.depth_units, DEPTH_UNIT_M)
            self._sensor.add_read_only_option(rs.option.stereo_baseline, 50.0)

    def send(self, mode: tuple[str, int], image: NDArray[Any], stamp_ms: float, number: int) -> None:
        frame = rs.software_video_frame()
        frame.pixels = image
        frame.bpp = image.strides[1]
        frame.stride = image.strides[0]
        frame.timestamp = stamp_ms
        frame.domain = rs.timestamp_domain.hardware_clock
        frame.frame_number = number
        frame.profile = self.profiles[mode].as_video_stream_profile()
        self._sensor.set_metadata(rs.frame_metadata_value.actual_fps, mode[1] * 1000)
        self._sensor.on_video_frame(frame)


def counts(depth_m: NDArray[np.float32], near_m: float) -> NDArray[np.uint16]:
    """True depth as the device counts it: 0 where it is nearer than ``near_m`` or beyond what it tells from noise."""
    inside = (depth_m >= near_m) & (depth_m <= MAX_M)
    return np.where(inside, np.rint(depth_m / DEPTH_UNIT_M), 0).astype(np.uint16)


def _stream(kind: Sensor, name: str, rate_hz: int, uid: int) -> Any:
    lens = unit_lens(kind, name)
    intrinsics = rs.intrinsics()
    intrinsics.width, intrinsics.height = lens.width, lens.height
    intrinsics.fx, intrinsics.fy, intrinsics.ppx, intrinsics.ppy = lens.fx, lens.fy, lens.cx, lens.cy
    intrinsics.model = rs.distortion.inverse_brown_conrady if kind == "color" else rs.distortion.brown_conrady
    intrinsics.coeffs = [0.0] * 5
    stream = rs.video_stream()
    stream.type = rs.stream.color if kind == "color" else rs.stream.depth
    stream.fmt = rs.format.rgb8 if kind == "color" else rs.format.z16
    stream.bpp = 3 if kind == "color" else 2
    stream.index, stream.uid, stream.fps = 0, uid, rate_hz
    stream.width, stream.height, stream.intrinsics = lens.width, lens.height, intrinsics
    return stream


def _link(depth: _Sensor, color: _Sensor) -> None:
    """Tell the SDK how the sensors sit to each other, whatever their modes."""
    color_from_depth = unit_color_from_depth()
    extrinsics = rs.extrinsics()
    extrinsics.rotation = [float(value) for value in color_from_depth[:3, :3].ravel(order="F")]
    extrinsics.translation = [float(value) for value in color_from_depth[:3, 3]]
    for profile in depth.profiles.values():
        for other in color.profiles.values():
            profile.register_extrinsics_to(other, extrinsics)
