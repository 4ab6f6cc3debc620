"""The ``options`` of a pan-tilt of Dynamixel servos in a robot's YAML file."""

import math
from dataclasses import dataclass, field, replace

from drivers.dynamixel.emulator import EmulatorOptions
from drivers.dynamixel.protocol import PROFILE_RAD_S
from drivers.dynamixel.variants import VARIANTS, PanTiltVariant, VariantName
from robot_runtime.common.config import Positive, Strict
from robot_runtime.common.quantities import AngleTolerance, Period, Rate, ShortTime

MAX_WATCHDOG_S = 2.54


@dataclass(frozen=True)
class DynamixelOptions(Strict):
    """The options.

    Attributes:
        variant: manufacturer's variant of the LoCoBot: ids, drive modes, limits and speeds by default.
        port: port of the servos' adapter.
        baud_rate: baud rate of the servos.
        pan_id: id of the pan's servo; None for the variant's.
        tilt_id: id of the tilt's servo; None for the variant's.
        min_pan_deg: reach, left positive; None for the variant's.
        max_pan_deg: greatest pan, left positive; None for the variant's.
        min_tilt_deg: least tilt, up positive; None for the variant's.
        max_tilt_deg: greatest tilt, up positive; None for the variant's.
        speed_deg_s: greatest speed; None for the variant's.
        settle_s: how long the head must stay at its goal to be at rest.
        tolerance_deg: distance from the goal within which a servo counts as at rest.
        rate_hz: rate at which the servos are read.
        watchdog_s: silence of this program after which the servos stop by themselves, 0.02 to 2.54.
        max_temperature_c: temperature above which no motion is begun.
        configure: whether to write the variant's drive modes and position mode to servos that have others.
        reboot: whether to restart a servo with a latched hardware error when connecting.
        release: whether to switch the torque off when closing; the camera may drop.
        emulator: emulator of the servos, on a simulated robot.
    """

    variant: VariantName = "pyrobot"
    port: str = "/dev/dynamixel"
    baud_rate: int = 1_000_000
    pan_id: int | None = None
    tilt_id: int | None = None
    min_pan_deg: float | None = None
    max_pan_deg: float | None = None
    min_tilt_deg: float | None = None
    max_tilt_deg: float | None = None
    speed_deg_s: Positive | None = None
    settle_s: ShortTime = 0.2
    tolerance_deg: AngleTolerance = 0.5
    rate_hz: Rate = 50.0
    watchdog_s: Period = 0.2
    max_temperature_c: int = 65
    configure: bool = False
    reboot: bool = False
    release: bool = False
    emulator: EmulatorOptions = field(default_factory=EmulatorOptions)

    def __post_init__(self) -> None:
        if self.watchdog_s > MAX_WATCHDOG_S or self.watchdog_s * self.rate_hz < 2:
            raise ValueError(
                f"watchdog_s must lie between two periods of rate_hz and {MAX_WATCHDOG_S}, got {self.watchdog_s}"
            )
        limits = self.pan_tilt.limits
        if not (limits.min_pan_rad <= 0 <= limits.max_pan_rad and limits.min_tilt_rad <= 0 <= limits.max_tilt_rad):
            raise ValueError("the limits of pan and of tilt must enclose 0")

    @property
    def pan_tilt(self) -> PanTiltVariant:
        """The variant with the options' ids, limits and speed."""
        variant = VARIANTS[self.variant]
        degrees = {name: getattr(self, f"{name}_deg") for name in ("min_pan", "max_pan", "min_tilt", "max_tilt")}
        given = {f"{name}_rad": math.radians(value) for name, value in degrees.items() if value is not None}
        velocity = variant.profile_velocity
        if self.speed_deg_s is not None:
            velocity = max(1, int(math.radians(self.speed_deg_s) / PROFILE_RAD_S))
        limits = replace(variant.limits, max_speed_rad_s=velocity * PROFILE_RAD_S, settle_s=self.settle_s, **given)
        pan = variant.pan if self.pan_id is None else replace(variant.pan, id=self.pan_id)
        tilt = variant.tilt if self.tilt_id is None else replace(variant.tilt, id=self.tilt_id)
        return replace(variant, pan=pan, tilt=tilt, limits=limits, profile_velocity=velocity)
