"""Connection of a camera: the computer's USB ports, or an emulated device."""

import functools
from typing import Any, Protocol

from drivers.realsense.sdk import rs
from robot_runtime.errors import DeviceFault


class Bus(Protocol):
    """Ports at which devices are searched."""

    @property
    def context(self) -> Any:
        """The ``rs.context`` that lists the devices."""

    def begin_wait(self) -> None:
        """Start or continue to deliver frames; called before every poll, without effect on a real device."""

    def end_wait(self) -> None:
        """Stop to deliver frames."""

    def is_connected(self, serial: str) -> bool:
        """Return whether the device of that serial number is connected."""


class UsbBus(Bus):
    """The computer's USB ports."""

    @functools.cached_property
    def context(self) -> Any:
        """The context, created at first use; from then on it watches the ports."""
        return rs.context()

    def begin_wait(self) -> None:
        pass

    def end_wait(self) -> None:
        pass

    def is_connected(self, serial: str) -> bool:
        return serial in serials(self.context)


def serials(context: Any) -> list[str]:
    """Return the serial numbers of a context's devices."""
    return [device.get_info(rs.camera_info.serial_number) for device in context.query_devices()]


def find_device(context: Any, serial: str) -> Any:
    """Return the device of a serial number, or the only one if ``serial`` is empty.

    Raises:
        DeviceFault: the device is not connected, or the choice is ambiguous.
    """
    devices = list(context.query_devices())
    found = [device.get_info(rs.camera_info.serial_number) for device in devices]
    if not devices:
        raise DeviceFault(
            "RealSense: no device is connected",
            "plug it into a USB 3 port and install the udev rule of drivers/realsense; `lsusb -d 8086:` lists it",
        )
    if serial and serial not in found:
        raise DeviceFault(
            f"RealSense {serial}: is not connected; {', '.join(found)} {'is' if len(found) == 1 else 'are'}",
            "plug it in, or correct 'serial' in the camera's YAML",
        )
    if not serial and len(devices) > 1:
        raise DeviceFault(
            f"RealSense: {len(devices)} devices are connected: {', '.join(found)}",
            "name one by 'serial' in the camera's YAML",
        )
    return devices[found.index(serial) if serial else 0]
