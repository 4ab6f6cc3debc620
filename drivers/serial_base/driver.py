"""Construction of a base behind a guard process from the options in a robot's YAML file."""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.emulator import EmulatedBase, EmulatorOptions
from drivers.serial_base.lockstep import LockstepEmulation
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.wire import BaseWire
from robot_runtime.common.config import Positive, Strict
from robot_runtime.hal import BaseInfo, KnownMotors, MotorModel, Robot


@dataclass(frozen=True)
class BaseOptions(Strict):
    """The ``options`` of a base; each kind of base has its own defaults.

    Attributes:
        port: path of the base's serial port.
        radius_m: radius of the robot, which may be wider than its base.
        max_linear_m_s: largest speed that the Guard lets through.
        max_angular_rad_s: largest turning rate that the Guard lets through.
        max_linear_accel_m_s2: largest acceleration that the Guard lets through when speeding up; stops are immediate.
        max_angular_accel_rad_s2: largest angular acceleration that the Guard lets through when speeding up.
        stop_button: button of the base that engages the emergency stop, by its bit; None for none.
        emulator: behavior of the emulated base on a simulated robot.
    """

    port: str
    radius_m: Positive
    max_linear_m_s: Positive
    max_angular_rad_s: Positive
    max_linear_accel_m_s2: Positive
    max_angular_accel_rad_s2: Positive
    stop_button: Annotated[int, Field(ge=0, le=7)] | None = 0
    emulator: EmulatorOptions = field(default_factory=EmulatorOptions)


@dataclass(frozen=True)
class BaseKind:
    """A kind of base on a serial port."""

    name: str
    wire: type[BaseWire]
    emulator: type[EmulatedBase]
    motors: MotorModel
    critical_fraction: float

    def info(self, options: BaseOptions) -> BaseInfo:
        """Return the properties of a base."""
        return BaseInfo(
            name=f"{self.name} on {options.port}",
            radius_m=options.radius_m,
            max_linear_m_s=options.max_linear_m_s,
            max_angular_rad_s=options.max_angular_rad_s,
            max_linear_accel_m_s2=options.max_linear_accel_m_s2,
            max_angular_accel_rad_s2=options.max_angular_accel_rad_s2,
            rate_hz=1 / self.wire.period_s,
        )

    def settings(self, options: BaseOptions) -> GuardSettings:
        """Return the settings of a base's guard process."""
        buttons = 0 if options.stop_button is None else 1 << options.stop_button
        return GuardSettings.of(self.wire, options.port, self.info(options), buttons)

    def make(self, robot: Robot, options: BaseOptions) -> GuardProcessBase:
        """Return a base of this kind, disconnected; emulated on a simulated robot."""
        emulation, simulation = None, robot.simulation
        if simulation is not None:
            chassis, random = simulation.chassis, simulation.random(self.wire.__module__)
            emulation = LockstepEmulation(chassis, self.emulator(chassis, random, options.emulator))
        settings = self.settings(options)
        base = GuardProcessBase(robot.clock, self.info(options), settings, self.critical_fraction, emulation)
        base.motors = KnownMotors(self.motors)
        return base
