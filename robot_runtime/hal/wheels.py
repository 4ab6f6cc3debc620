"""Velocity, contact zones, limits: the part of a base's interface that its Guard needs.

Of the standard library alone and for Python >= 3.8, as everything that the guard node imports on a robot's computer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag


class Zone(Flag):
    """The base's three sensors: bumpers span +90..+30, +30..-30 and -30..-90 degrees (Kobuki)."""

    NONE = 0
    LEFT = 1
    CENTER = 2
    RIGHT = 4


class Halt(str, Enum):
    """Reason for which the Guard refuses motion, in order of precedence; ``NONE`` when it does not."""

    NONE = "none"
    E_STOP = "e_stop"
    NO_FEEDBACK = "no_feedback"
    WHEEL_DROP = "wheel_drop"
    CLIFF = "cliff"
    CONTACT = "contact"
    EXPIRED = "expired"


@dataclass(frozen=True)
class Velocity:
    """A planar velocity in base_link: forward m/s, counter-clockwise rad/s."""

    linear_m_s: float = 0.0
    angular_rad_s: float = 0.0


@dataclass(frozen=True)
class BaseInfo:
    """Properties of a base. ``rate_hz`` is the rate of its states and of the commands that it accepts.

    ``senses_contact`` is whether anything on it reports that it touches something.
    """

    name: str
    radius_m: float
    max_linear_m_s: float
    max_angular_rad_s: float
    max_linear_accel_m_s2: float
    max_angular_accel_rad_s2: float
    rate_hz: float
    senses_contact: bool = True
