"""Serial port of the servos: a USB adapter to their bus."""

from drivers.serial_wire.port import Attachment

SERVOS = Attachment(
    "servos' adapter",
    frozenset({0x0403}),  # FTDI, in the maker's own adapter
    "drivers/dynamixel/60-dynamixel.rules",
    "'port' and 'baud_rate' in the head's options",
)
