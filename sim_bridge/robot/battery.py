"""The simulated base's battery."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from robot_runtime.common import config
from robot_runtime.common.config import NonNegative, Positive

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class BatteryOptions(config.Strict):
    """Kobuki's small battery (4S1P, 2200 mAh at 14.8 V) and the approximate power of a LoCoBot with its computer.

    Attributes:
        capacity_wh: energy when full.
        full_v: voltage under load when full.
        empty_v: voltage under load when empty; in between it is linear in the charge.
        idle_w: power at all times.
        drive_w: additional power while the wheels turn.
        start_fraction: charge at the start, 0 empty .. 1 full.
    """

    capacity_wh: Positive = 32.6
    full_v: Positive = 16.5
    empty_v: Positive = 13.2
    idle_w: NonNegative = 15.0
    drive_w: NonNegative = 12.0
    start_fraction: Annotated[float, Field(ge=0, le=1)] = 1.0


class Battery:
    """Charge that goes down with time and with driving.

    Attributes:
        fraction: 0 empty .. 1 full.
    """

    def __init__(self, options: BatteryOptions) -> None:
        self.fraction = options.start_fraction
        self._options = options

    @property
    def voltage_v(self) -> float:
        """Present voltage."""
        return self._options.empty_v + self.fraction * (self._options.full_v - self._options.empty_v)

    def drain(self, seconds: float, driving: bool) -> None:
        """Remove the energy that is used in that time."""
        power_w = self._options.idle_w + (self._options.drive_w if driving else 0.0)
        self.fraction = max(0.0, self.fraction - power_w * seconds / SECONDS_PER_HOUR / self._options.capacity_wh)
