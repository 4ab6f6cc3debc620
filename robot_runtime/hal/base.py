"""Interface of the base: wheels, bumpers, battery."""

import math
from abc import abstractmethod
from dataclasses import dataclass

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.device import Device
from robot_runtime.hal.localizer import Localizer
from robot_runtime.hal.motors import KnownMotors
from robot_runtime.hal.wheels import BaseInfo, Halt, Velocity, Zone


@dataclass(frozen=True, slots=True)
class BaseState:
    """The base at one instant. Contact, cliff and wheel drop are levels, not events.

    Attributes:
        stamp_ns: time of the measurement, Clock nanoseconds.
        odom: pose of base_link in ``odom``, by wheel odometry.
        velocity: measured velocity.
        bumper: zones pressed now.
        cliff: zones that see no floor now.
        wheel_drop: wheels hanging now (LEFT, RIGHT).
        halt: reason for which the Guard holds the wheels now.
        battery_v: voltage of the battery; NaN if the base does not measure it.
        battery_fraction: charge, 0 empty .. 1 full; NaN if the base does not know it.
    """

    stamp_ns: int
    odom: SE2
    velocity: Velocity
    bumper: Zone
    cliff: Zone
    wheel_drop: Zone
    halt: Halt
    battery_v: float
    battery_fraction: float

    @property
    def battery(self) -> str:
        """The battery's charge and voltage, for people."""
        charge = "unknown charge" if math.isnan(self.battery_fraction) else f"{100 * self.battery_fraction:.0f} %"
        return charge if math.isnan(self.battery_v) else f"{charge} ({self.battery_v:.1f} V)"

    def check_finite(self) -> None:
        """Refuse odometry that is not a number, before a controller computes a command from it.

        NaN passes through ``min`` and ``max`` as a full-speed command.

        Raises:
            DeviceFault: pose or velocity is not finite.
        """
        odom, velocity = self.odom, self.velocity
        if not math.isfinite(odom.x_m + odom.y_m + odom.yaw_rad + velocity.linear_m_s + velocity.angular_rad_s):
            raise DeviceFault(
                f"base: odometry is not finite: {odom}, {velocity}",
                "check the base's driver and wiring; the wheels were stopped",
            )


class Base(Device):
    """A differential-drive base behind its Guard (``robot_runtime.safety``), in the driver.

    Attributes:
        motors: what controllers may assume of its motors. A driver sets the model of its type of base, a calibration
            replaces that.
    """

    motors = KnownMotors()

    @property
    @abstractmethod
    def info(self) -> BaseInfo:
        """Properties, also while disconnected."""

    @property
    def odometry(self) -> Localizer | None:
        """Its dead reckoning in ``odom`` at its own rate, for robots whose files name the base; None for none."""
        return None

    @abstractmethod
    def state(self, max_age_s: float) -> BaseState:
        """The newest state; for any thread. Raises ``StaleData`` if it is older than ``max_age_s``."""

    def touched(self) -> Zone:
        """Zones that were pressed at any time since the last call, however short.

        The default is for bases whose every state is read: they lose no contact between two looks.
        """
        return Zone.NONE

    def obstructed(self) -> Zone | None:
        """Zones where walls, along which a simulated robot slides, have shortened its motion since the last call."""
        return None

    @abstractmethod
    def command(self, velocity: Velocity) -> Velocity:
        """Ask for a velocity and return what the Guard let through.

        It expires after the Guard's ``command_timeout_s`` (0.2 s): repeat it to keep moving.

        Raises:
            InvalidCommand: for NaN or infinity; the wheels are stopped first.
        """

    @abstractmethod
    def stop(self) -> None:
        """Wheels to zero now, past every ramp. Never raises for a connected base."""

    @abstractmethod
    def emergency_stop(self) -> None:
        """Stop as :meth:`stop`, and refuse every motion until :meth:`release_emergency_stop`. For any thread."""

    @abstractmethod
    def release_emergency_stop(self) -> None:
        """Allow motion again; the robot stays still until a new command. For any thread."""
