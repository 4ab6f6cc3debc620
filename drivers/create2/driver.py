"""Create 2 base: ``driver: drivers.create2.driver.make_base``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from drivers.create2.emulator import EmulatedCreate2
from drivers.create2.protocol import PERIOD_S
from drivers.serial_base.base import GuardedBase
from drivers.serial_base.emulator import EmulatorOptions
from drivers.serial_base.lockstep import LockstepEmulation
from drivers.serial_base.settings import GuardSettings
from robot_runtime.common import config
from robot_runtime.common.config import Positive
from robot_runtime.hal import Base, BaseInfo, Robot
from robot_runtime.hal.motors import CREATE_2_MOTORS, KnownMotors
from robot_runtime.robots.loader import RobotContext
from robot_runtime.safety import GuardLimits

RADIUS_M = 0.17
CRITICAL_FRACTION = 0.05
WIRE = "drivers.create2.wire:Create2Wire"


@dataclass(frozen=True)
class Create2Options:
    """The ``options`` of a Create 2.

    Attributes:
        port: of the base.
        radius_m: of the robot, which may be wider than its base.
        max_linear_m_s: limit of the Guard; a wheel's is 0.5.
        max_angular_rad_s: likewise.
        max_linear_accel_m_s2: likewise, for speeding up; stops are immediate. It must grant a step of the base's speed
            controller, 28.5 mm/s, in each period: less does nothing.
        max_angular_accel_rad_s2: likewise.
        stop_button: button of the base that engages the emergency stop: 0 for Clean; None for none.
        emulator: behavior of the emulated base on a simulated robot.
    """

    port: str = "/dev/create2"
    radius_m: Positive = RADIUS_M
    max_linear_m_s: Positive = 0.5
    max_angular_rad_s: Positive = 3.0
    max_linear_accel_m_s2: Positive = 2.0
    max_angular_accel_rad_s2: Positive = 17.0
    stop_button: Annotated[int, Field(ge=0, le=7)] | None = 0
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
            rate_hz=1 / PERIOD_S,
        )


def make_base(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Base:
    """Return the base, disconnected; emulated on a simulated robot. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), Create2Options, where)
    info = chosen.info(f"Create 2 on {chosen.port}")
    buttons = 0 if chosen.stop_button is None else 1 << chosen.stop_button
    settings = GuardSettings(WIRE, chosen.port, GuardLimits.of(info), buttons)
    emulation = None
    if robot.simulation is not None:
        chassis = robot.simulation.chassis
        device = EmulatedCreate2(chassis, robot.simulation.random("create2"), chosen.emulator)
        emulation = LockstepEmulation(chassis, device)
    base = GuardedBase(robot.clock, info, settings, CRITICAL_FRACTION, emulation)
    base.motors = KnownMotors(CREATE_2_MOTORS)
    return base
