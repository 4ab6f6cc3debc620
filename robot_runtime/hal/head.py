"""The head, which tilts the camera."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from robot_runtime.errors import InvalidCommand
from robot_runtime.hal.device import Device


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """Reach and speed of the pan-tilt. Tilt is up positive; pan is left positive."""

    min_pan_rad: float
    max_pan_rad: float
    min_tilt_rad: float
    max_tilt_rad: float
    max_speed_rad_s: float
    settle_s: float

    def clip(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        """The nearest angles within reach. Raises ``InvalidCommand`` for NaN or infinity."""
        if not (math.isfinite(pan_rad) and math.isfinite(tilt_rad)):
            raise InvalidCommand(
                f"head angles ({pan_rad}, {tilt_rad}) rad are not finite",
                "check the controller or policy that computed them; the head was left as it is",
            )
        return (
            min(max(pan_rad, self.min_pan_rad), self.max_pan_rad),
            min(max(tilt_rad, self.min_tilt_rad), self.max_tilt_rad),
        )


@dataclass(frozen=True, slots=True)
class HeadState:
    """The pan-tilt at one instant. ``moving`` is true until it has come to rest at its goal."""

    stamp_ns: int
    pan_rad: float
    tilt_rad: float
    moving: bool


class Head(Device):
    """A pan-tilt unit."""

    @property
    @abstractmethod
    def limits(self) -> HeadLimits:
        """Reach and speed, also while disconnected."""

    @abstractmethod
    def state(self, max_age_s: float) -> HeadState:
        """The newest state. Raises ``StaleData``."""

    @abstractmethod
    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        """Move to these angles and return at once with the angles actually commanded, clipped to ``limits``.

        Raises:
            InvalidCommand: for NaN or infinity; the head stays where it is.
        """
