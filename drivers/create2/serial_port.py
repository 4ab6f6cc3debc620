"""Serial port of a Create 2."""

from drivers.serial_wire.port import Attachment

CREATE_2 = Attachment(
    "Create 2",
    frozenset({0x0403}),  # FTDI, in iRobot's own cable
    "drivers/create2/60-create2.rules",
    "'port' in the base's options",
)
