"""Serial ports of this computer, and what may be connected to them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from serial.tools import list_ports

from drivers.hardware.udev import rule_files
from robot_runtime.common.clock import Clock, wait_for

BY_ID = Path("/dev/serial/by-id")
USB_SERIAL = Path("/sys/bus/usb-serial/devices")
POLL_S = 0.1


@dataclass(frozen=True)
class SerialPort:
    """A serial port on USB.

    Attributes:
        vendor: USB vendor id.
        product: USB product id.
        serial_number: serial number of the device; empty for none.
        by_id: the link that stays the same when it is plugged in elsewhere; None for none.
    """

    path: str
    vendor: int
    product: int
    serial_number: str = ""
    description: str = ""
    by_id: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Links that the bundled udev rules make for its kind of device: what it may be."""
        known = (self.vendor, self.product, self.serial_number)
        return tuple(rule.link for file in rule_files() for rule in file.rules if rule.fits(*known))

    def __str__(self) -> str:
        made = f"{self.vendor:04x}:{self.product:04x} {self.description} {self.serial_number}".strip()
        may_be = f"; may be {' or '.join(self.names)}" if self.names else ""
        return f"{self.path} ({made}{may_be})"


def usb_ports() -> dict[str, SerialPort]:
    """Return the serial ports on USB, by path."""
    links = {os.path.realpath(link): str(link) for link in sorted(BY_ID.glob("*"))}
    found = {}
    for port in list_ports.comports():
        if port.vid is not None:
            found[port.device] = SerialPort(
                port.device,
                port.vid,
                port.pid or 0,
                port.serial_number or "",
                port.product or "",
                links.get(os.path.realpath(port.device)),
            )
    return found


def wait_for_change(
    clock: Clock,
    before: Mapping[str, SerialPort],
    appears: bool,
    timeout_s: float,
    ports: Callable[[], Mapping[str, SerialPort]] = usb_ports,
) -> SerialPort | None:
    """Return the first port that has appeared, or vanished, since ``before``; None if none did within the time."""

    def changed() -> SerialPort | None:
        now = ports()
        here, there = (now, before) if appears else (before, now)
        return next((here[path] for path in sorted(here.keys() - there.keys())), None)

    return wait_for(clock, changed, timeout_s, POLL_S)


def latency_timer_ms(path: str, root: Path = USB_SERIAL) -> int | None:
    """Return how long an FTDI adapter waits before it passes a few bytes on, or None for other adapters."""
    try:
        return int((root / Path(os.path.realpath(path)).name / "latency_timer").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
