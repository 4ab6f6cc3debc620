"""The ``options`` of a RealSense camera in a robot's YAML file, and the settings of its sensors."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from drivers.realsense.filters import FilterOptions
from drivers.realsense.modes import size_of
from drivers.realsense.sdk import rs
from robot_runtime.common import config
from robot_runtime.common.quantities import Latency, Timeout
from robot_runtime.errors import ConfigError

Preset = Literal["custom", "default", "hand", "high_accuracy", "high_density", "medium_density"]

COLOR_EXPOSURE_US = 100.0
"""Unit of the color sensor's exposure; that of the stereo module is 1 us."""


Settings = tuple[tuple[str, str, float], ...]
"""Field, the SDK's option and its value, in the order in which they must be set."""


def _chosen(*settings: tuple[str, str, float | None]) -> Settings:
    return tuple((field, option, float(value)) for field, option, value in settings if value is not None)


@dataclass(frozen=True)
class ColorOptions(config.Strict):
    """Settings of the color sensor; None keeps the device's default, automatic control.

    Attributes:
        exposure_us: exposure time, a multiple of 100.
        gain: gain in the device's units.
        white_balance_k: color temperature, kelvin.
    """

    exposure_us: Annotated[float, Field(gt=0)] | None = None
    gain: Annotated[float, Field(ge=0)] | None = None
    white_balance_k: Annotated[float, Field(gt=0)] | None = None

    def settings(self) -> Settings:
        """The settings that are not the device's defaults."""
        manual = self.exposure_us is not None or self.gain is not None
        exposure = None if self.exposure_us is None else self.exposure_us / COLOR_EXPOSURE_US
        return _chosen(
            ("color_sensor.exposure_us", "enable_auto_exposure", 0.0 if manual else None),
            ("color_sensor.exposure_us", "exposure", exposure),
            ("color_sensor.gain", "gain", self.gain),
            ("color_sensor.white_balance_k", "enable_auto_white_balance", self.white_balance_k and 0.0),
            ("color_sensor.white_balance_k", "white_balance", self.white_balance_k),
        )


@dataclass(frozen=True)
class DepthOptions(config.Strict):
    """Settings of the stereo module; None keeps the device's default.

    Attributes:
        preset: visual preset of the SDK, applied before the other settings.
        laser: whether the infrared pattern is projected.
        laser_power_mw: power of the infrared pattern's projector.
        exposure_us: instead of automatic exposure.
        gain: instead of automatic gain, in the device's units.
    """

    preset: Preset | None = None
    laser: bool | None = None
    laser_power_mw: Annotated[float, Field(ge=0)] | None = None
    exposure_us: Annotated[float, Field(gt=0)] | None = None
    gain: Annotated[float, Field(ge=0)] | None = None

    def settings(self) -> Settings:
        """The settings that are not the device's defaults."""
        manual = self.exposure_us is not None or self.gain is not None
        preset = None if self.preset is None else int(getattr(rs.rs400_visual_preset, self.preset))
        return _chosen(
            ("depth_sensor.preset", "visual_preset", preset),
            ("depth_sensor.laser", "emitter_enabled", self.laser),
            ("depth_sensor.laser_power_mw", "laser_power", self.laser_power_mw),
            ("depth_sensor.exposure_us", "enable_auto_exposure", 0.0 if manual else None),
            ("depth_sensor.exposure_us", "exposure", self.exposure_us),
            ("depth_sensor.gain", "gain", self.gain),
        )


@dataclass(frozen=True)
class StreamOptions(config.Strict):
    """Streams of the camera, and the filters applied to them.

    Attributes:
        serial: serial number of the device; empty takes the only one that is connected.
        file: a recording (``.db3``, ``.bag``) to play instead; empty for a live device.
        repeat: whether a recording restarts at its end.
        real_time: whether a recording is played at its original pace; else each request yields the next pair, as if it
            had just been exposed.
        record_to: a new ``.db3`` file for everything that a live device delivers.
        color: mode, as ``robot-runtime doctor`` lists it.
        depth: mode, as ``robot-runtime doctor`` lists it.
        rate_hz: rate of color and depth.
        color_sensor: settings of the color sensor.
        depth_sensor: settings of the stereo module.
        filters: filters applied to depth.
        latency_s: delay from the middle of an exposure to its arrival that the device's stamps do not contain, as
            measured by ``robot-runtime calibrate latency``.
        start_timeout_s: time limit of the first pair.
    """

    serial: str = ""
    file: str = ""
    repeat: bool = False
    real_time: bool = True
    record_to: str = ""
    color: str = "1280x720"
    depth: str = "848x480"
    rate_hz: Annotated[int, Field(ge=1, le=90)] = 30
    color_sensor: ColorOptions = field(default_factory=ColorOptions)
    depth_sensor: DepthOptions = field(default_factory=DepthOptions)
    filters: FilterOptions = field(default_factory=FilterOptions)
    latency_s: Latency = 0.0
    start_timeout_s: Timeout = 5.0

    def __post_init__(self) -> None:
        for name in (self.color, self.depth):
            size_of(name)
        if self.repeat and not self.file:
            raise ValueError("'repeat' is for a 'file'")
        if not (self.real_time or self.file):
            raise ValueError("'real_time: false' is for a 'file'")
        if self.record_to and (self.file or not self.record_to.endswith(".db3")):
            raise ValueError("'record_to' names a .db3 file to write, and is not for a 'file' that is played")


def apply_settings(sensor: Any, settings: Settings, where: str) -> None:
    """Set a sensor's options.

    Raises:
        ConfigError: the device has no such option, or not that value; names the field and what it takes.
    """
    for name, option_name, value in settings:
        option = getattr(rs.option, option_name)
        if not sensor.supports(option) or sensor.is_option_read_only(option):
            raise ConfigError(f"{where}: field {name!r}: this device has no such setting", f"leave {name!r} out")
        reach = sensor.get_option_range(option)
        if not reach.min <= value <= reach.max:
            scale = COLOR_EXPOSURE_US if name == "color_sensor.exposure_us" else 1.0
            raise ConfigError(
                f"{where}: field {name!r}: {value * scale:g} is not what the device takes",
                f"choose from {reach.min * scale:g} to {reach.max * scale:g}",
            )
        sensor.set_option(option, value)
