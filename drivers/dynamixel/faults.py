"""Faults of the emulated servos, each during a window of the robot's clock."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from drivers.dynamixel.protocol import HardwareError
from drivers.serial_wire.faults import DroppedBytes, Noisy, Unplugged
from robot_runtime.hal.fault_schedule import Window


@dataclass(frozen=True)
class ServoFault(Window):
    """A fault of the servo ``id``, or of all with 0."""

    id: int = 0

    def concerns(self, servo: int) -> bool:
        """Whether it is this servo's."""
        return self.id in (0, servo)


@dataclass(frozen=True)
class Silent(ServoFault):
    """No replies: a cable is loose."""

    kind: Literal["silent"] = "silent"


@dataclass(frozen=True)
class LatchedError(ServoFault):
    """A hardware error, latched until a reboot; it switches the torque off if the shutdown mask has its bit."""

    kind: Literal["latched_error"] = "latched_error"
    bits: int = HardwareError.OVERLOAD.value


@dataclass(frozen=True)
class Restarted(ServoFault):
    """The supply fails: the torque is off, and all volatile registers have their defaults."""

    kind: Literal["restarted"] = "restarted"


@dataclass(frozen=True)
class Stuck(ServoFault):
    """The shaft does not turn."""

    kind: Literal["stuck"] = "stuck"


@dataclass(frozen=True)
class Hot(ServoFault):
    """The servo has this temperature."""

    kind: Literal["hot"] = "hot"
    temperature_c: int = 70


@dataclass(frozen=True)
class GoalRefused(ServoFault):
    """Goals of a sync write are lost: nothing answers a sync write."""

    kind: Literal["goal_refused"] = "goal_refused"


@dataclass(frozen=True)
class Slow(Window):
    """Replies arrive only after the next instruction: later than the driver waits."""

    kind: Literal["slow"] = "slow"


Fault = Annotated[
    Silent | LatchedError | Restarted | Stuck | Hot | GoalRefused | Noisy | DroppedBytes | Slow | Unplugged,
    Field(discriminator="kind"),
]
