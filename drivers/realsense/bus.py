"""What a camera hangs on: the computer's USB ports, or an emulated device's end of the wire."""

from __future__ import annotations

import functools
from typing import Any, Protocol

from drivers.realsense.sdk import rs
from robot_runtime.errors import DeviceFault


class Bus(Protocol):
    """Where devices are looked for."""

    @property
    def context(self) -> Any:
        """The ``rs.context`` that sees them."""
        ...

    def begin_wait(self) -> None:
        """Somebody waits for frames. Called before every look; a real device does not care."""
        ...

    def end_wait(self) -> None:
        """Nobody waits for frames any more."""
        ...

    def is_connected(self, serial: str) -> bool:
        """Whether that device is still there."""
        ...


class UsbBus(Bus):
    """This computer's ports."""

    @functools.cached_property
    def context(self) -> Any:
        """Made when it is first needed: from then on it watches the ports."""
        return rs.context()

    def begin_wait(self) -> None:
        pass

    def end_wait(self) -> None:
        pass

    def is_connected(self, serial: str) -> bool:
        return serial in serials(self.context)


def serials(context: Any) -> list[str]:
    """Serial numbers of the devices that a context sees."""
    return [device.get_info(rs.camera_info.serial_number) for device in context.query_devices()]


def find_device(context: Any, serial: str) -> Any:
    """The device of that serial number, or the only one if ``serial`` is empty.

    Raises:
        DeviceFault: it is not there, or it is not clear which is meant.
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
            "say which one is meant by 'serial' in the camera's YAML",
        )
    return devices[found.index(serial) if serial else 0]
