"""Serial port of a Kobuki."""

from __future__ import annotations

from drivers.serial_wire.port import Attachment

KOBUKI = Attachment(
    "Kobuki",
    frozenset({0x0403}),  # FTDI
    "drivers/kobuki/60-kobuki.rules",
    "'port' in the base's options",
)
