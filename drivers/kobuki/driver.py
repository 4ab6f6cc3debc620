"""Kobuki base: ``driver: drivers.kobuki.driver.make_base``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from drivers.kobuki.emulator import EmulatedKobuki
from drivers.kobuki.wire import CRITICAL_FRACTION
from drivers.serial_base.base import GuardedBase
from drivers.serial_base.emulator import EmulatorOptions
from drivers.serial_base.lockstep import LockstepEmulation
from drivers.serial_base.settings import GuardSettings
from robot_runtime.common import config
from robot_runtime.common.config import Positive
from robot_runtime.hal import Base, BaseInfo, Robot
from robot_runtime.hal.motors import KOBUKI_MOTORS, KnownMotors
from robot_runtime.robots.loader import RobotContext
from robot_runtime.safety import GuardLimits

RADIUS_M = 0.178
RATE_HZ = 50.0
WIRE = "drivers.kobuki.wire:KobukiWire"


@dataclass(frozen=True)
class KobukiOptions:
    """The ``options`` of a Kobuki.

    Attributes:
        port: of the base.
        radius_m: of the robot, which may be wider than its base.
        max_linear_m_s: limit of the Guard; the vendor's is 0.7.
        max_angular_rad_s: likewise; the vendor's is 180 deg/s, and the gyro degrades above 110.
        max_linear_accel_m_s2: likewise, for speeding up; stops are immediate.
        max_angular_accel_rad_s2: likewise.
        stop_button: button of the base that engages the emergency stop, 0 to 2; None for none.
        emulator: behavior of the emulated base on a simulated robot.
    """

    port: str = "/dev/kobuki"
    radius_m: Positive = RADIUS_M
    max_linear_m_s: Positive = 0.7
    max_angular_rad_s: Positive = math.pi
    max_linear_accel_m_s2: Positive = 1.0
    max_angular_accel_rad_s2: Positive = 7.0
    stop_button: Annotated[int, Field(ge=0, le=2)] | None = 0
    emulator: EmulatorOptions = field(default_factory=EmulatorOptions)

    __pydantic_config__ = config.STRICT

    def info(self, name: str) -> BaseInfo:
        """Return the properties of the base."""
        return BaseInfo(
            name=name,
            radius_m=self.radius_m,
            max_linear_m_s=self.max_linear_m_s,
            max_angular_rad_s=self.max_angular_rad_s,
            max_linear_accel_m_s2=self.max_linear_accel_m_s2,
            max_angular_accel_rad_s2=self.max_angular_accel_rad_s2,
            rate_hz=RATE_HZ,
        )


def make_base(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Base:
    """Return the base, disconnected; emulated on a simulated robot. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), KobukiOptions, where)
    info = chosen.info(f"Kobuki on {chosen.port}")
    buttons = 0 if chosen.stop_button is None else 1 << chosen.stop_button
    settings = GuardSettings(WIRE, chosen.port, GuardLimits.of(info), buttons)
    emulation = None
    if robot.simulation is not None:
        chassis = robot.simulation.chassis
        device = EmulatedKobuki(chassis, robot.simulation.random("kobuki"), chosen.emulator)
        emulation = LockstepEmulation(chassis, device)
    base = GuardedBase(robot.clock, info, settings, CRITICAL_FRACTION, emulation)
    base.motors = KnownMotors(KOBUKI_MOTORS)
    return base
