"""Serial port of a hedgehog."""

from drivers.serial_wire.port import Attachment

HEDGEHOG = Attachment(
    "hedgehog",
    frozenset({0x0483}),  # hedgehogs and modems are USB serial devices of STMicroelectronics
    "drivers/marvelmind/60-marvelmind.rules",
    "'port' and 'baud_rate' in the localizer's options",
)
