"""Faults that can be injected into the simulated robot, by the service ``/simulation/fault``."""

import difflib
import math

from robot_runtime.errors import ConfigError

FAULTS = {
    "camera_silent": "no image, no camera_info",
    "camera_frozen": "the same image forever, with fresh stamps",
    "rgb_silent": "no color; depth continues",
    "depth_silent": "no depth; color continues",
    "camera_unpaired": "depth is stamped half a period after its color image",
    "depth_32fc1": "depth as 32FC1 in meters, as from some other drivers: valid, but another encoding",
    "depth_mislabelled": "depth labeled 16UC1 with values in meters",
    "camera_info_silent": "images without camera_info",
    "sensors_silent": "nothing from the base: no core, events, odometry, joints or IMU",
    "core_silent": "no sensors/core, so that only events report contact; a Create has no bumper then",
    "odom_silent": "no odometry and no tf of it",
    "head_silent": "no joint states of pan and tilt",
    "head_stuck": "pan and tilt ignore commands",
    "localizer_silent": "no pose from the localizer and no tf of it",
    "localizer_jump_m": "the localizer is off by so many meters along x of map",
    "localizer_jump_rad": "the localizer is off by so many radians",
    "clock_skew_s": "every stamp is so many seconds ahead (negative: behind)",
    "bumper": "additional pressed bits: 1 left, 2 center, 4 right",
    "cliff": "additional bits without floor: 1 left, 2 center, 4 right",
    "wheel_drop": "additional dropped wheels: 1 left, 4 right",
    "battery": "charge of the battery, a fraction above 0",
    "clock_stopped": "`/clock` is silent and the simulation is paused; only with `--clock sim`",
}
"""Every fault and its effect. The value is 1 for on where the text does not say what it means; 0 ends each."""

BITS = ("bumper", "cliff", "wheel_drop")


class Faults:
    """The present faults, each with its value."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}

    def set(self, name: str, value: float) -> None:
        """Begin, change or end (value 0) a fault; without a name, end all.

        Raises:
            ConfigError: The fault does not exist, or cannot have that value.
        """
        if not name:
            self._values = {}
            return
        if name not in FAULTS:
            close = difflib.get_close_matches(name, FAULTS, n=3) or sorted(FAULTS)
            raise ConfigError(f"there is no fault {name!r}", f"use one of: {', '.join(close)}")
        if not math.isfinite(value):
            raise ConfigError(f"fault {name!r}: {value} is not finite", "give a number")
        if name in BITS and value not in range(8):
            raise ConfigError(f"fault {name!r}: {value:g} is not a set of three bits", "give 0 to 7")
        if name == "battery" and not 0 <= value <= 1:
            raise ConfigError(f"fault {name!r}: {value:g} is not a charge", "give a fraction, 0 to 1")
        # A new mapping each time, so that other threads read a consistent one.
        others = {key: other for key, other in self._values.items() if key != name}
        self._values = {**others, name: value} if value else others

    def __contains__(self, name: str) -> bool:
        assert name in FAULTS, name
        return name in self._values

    def value(self, name: str) -> float:
        """Return the fault's value; 0 if it is not present."""
        assert name in FAULTS, name
        return self._values.get(name, 0.0)

    def bits(self, name: str) -> int:
        """Return the fault's value as bits."""
        return int(self.value(name))
