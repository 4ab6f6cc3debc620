"""Faults of the emulated servos, each during a window of the robot's clock."""

from typing import Annotated

from pydantic import Field

from drivers.dynamixel.protocol import HardwareError
from drivers.serial_wire.faults import DroppedBytes, Noisy, Unplugged
from robot_runtime.hal.fault_schedule import Window


class ServoFault(Window):
    """A fault of the servo ``id``, or of all with 0."""

    id: int = 0

    def concerns(self, servo: int) -> bool:
        """Whether it is this servo's."""
        return self.id in (0, servo)


class Silent(ServoFault):
    """No replies: a cable is loose."""


class LatchedError(ServoFault):
    """A hardware error, latched until a reboot; it switches the torque off if the shutdown mask has its bit."""

    bits: int = HardwareError.OVERLOAD.value


class Restarted(ServoFault):
    """The supply fails: the torque is off, and all volatile registers have their defaults."""


class Stuck(ServoFault):
    """The shaft does not turn."""


class Hot(ServoFault):
    """The servo has this temperature."""

    temperature_c: int = 70


class GoalRefused(ServoFault):
    """Goals of a sync write are lost: nothing answers a sync write."""


class Slow(Window):
    """Replies arrive only after the next instruction: later than the driver waits."""


Fault = Annotated[
    Silent | LatchedError | Restarted | Stuck | Hot | GoalRefused | Noisy | DroppedBytes | Slow | Unplugged,
    Field(discriminator="kind"),
]
