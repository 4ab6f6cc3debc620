"""Serial port of a Kobuki."""

from drivers.serial_wire.port import Attachment

KOBUKI = Attachment(
    "Kobuki",
    frozenset({0x0403}),  # FTDI
    "drivers/kobuki/60-kobuki.rules",
    "'port' in the base's options",
)
