"""A D435 made of the SDK's ``software_device``: modes, settings, lenses, and injected images.

Requirements of the SDK (2.59.1):

* The context drops a device without other references: the list passed to the device callback is kept.
* A frame without ``actual_fps`` is never paired, because the syncer assumes a rate of 1 to 3 Hz.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.realsense.modes import nominal_lens, nominal_modes
from drivers.realsense.sdk import rs
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.source import Sensor

NAME = "Intel RealSense D435"
SERIAL = "SIM000000435"
DEPTH_UNIT_M = 0.001

_FOCAL = {"color": 1.004, "depth": 0.993}
_CENTER = {"color": (3.4, -2.1), "depth": (-1.7, 0.9)}
"""Deviation of this unit from the nominal one, pixels at 720 lines: nominal values show as errors."""

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
"""Minimum, maximum, step and default, as a D435 reports them."""


def unit_lens(sensor: Sensor, name: str) -> Lens:
    """Return this unit's lens in a mode."""
    nominal = nominal_lens(sensor, name)
    scale = nominal.height / 720
    x, y = _CENTER[sensor]
    f = nominal.fx * _FOCAL[sensor]
    return Lens(nominal.width, nominal.height, f, f, nominal.cx + x * scale, nominal.cy + y * scale)


def unit_color_from_depth() -> NDArray[np.float64]:
    """Return this unit's transform from depth to color sensor, float64 (4, 4)."""
    left, _, right = np.linalg.svd(_COLOR_FROM_DEPTH[:3, :3])
    matrix = _COLOR_FROM_DEPTH.copy()
    matrix[:3, :3] = left @ right
    return np.asarray(matrix)


class SoftwareD435:
    """The device on its own context.

    Attributes:
        context: the ``rs.context`` that lists it in addition to the devices on the computer's ports.
    """

    def __init__(self, color: str, depth: str, rate_hz: int) -> None:
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
        self._depth, self._color = _Sensor(self._device, "depth"), _Sensor(self._device, "color")
        _link(self._depth, self._color)
        self._device.create_matcher(rs.matchers.dlr_c)
        self._color_mode, self._depth_mode = (color, rate_hz), (depth, rate_hz)
        self._held: list[Any] = []
        self.context = rs.context()
        self.context.set_devices_changed_callback(lambda change: self._held.append(change.get_new_devices()))
        self._device.add_to(self.context)

    def send(
        self, color: NDArray[np.uint8] | None, depth: NDArray[np.uint16] | None, stamp_ms: float, number: int
    ) -> None:
        """Inject the images of the same exposure.

        Args:
            color: uint8 (H, W, 3); None for a lost image.
            depth: uint16 (H, W); None for a lost image.
            stamp_ms: time on the device's clock.
            number: number of the exposure.
        """
        if depth is not None:
            self._depth.send(self._depth_mode, depth, stamp_ms, number)
        if color is not None:
            self._color.send(self._color_mode, color, stamp_ms, number)


class _Sensor:
    """A sensor of the device with its modes and options."""

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
    """Register the transform between the sensors for all modes."""
    color_from_depth = unit_color_from_depth()
    extrinsics = rs.extrinsics()
    extrinsics.rotation = [float(value) for value in color_from_depth[:3, :3].ravel(order="F")]
    extrinsics.translation = [float(value) for value in color_from_depth[:3, 3]]
    for profile in depth.profiles.values():
        for other in color.profiles.values():
            profile.register_extrinsics_to(other, extrinsics)
