"""Checks of a computer for a RealSense: ``robot-runtime doctor realsense``."""

import os
from collections.abc import Sequence

from robot_runtime.common.host_checks import Finding, Status, usb_devices

VENDOR = "8086"
CAMERAS = ("0ad1", "0ad2", "0ad3", "0ad4", "0ad5", "0b07", "0b3a", "0b5b", "0b5c", "0b64")
"""Product numbers of the D400 series, as in ``99-realsense.rules``."""

RULES = "sudo cp drivers/realsense/99-realsense.rules /etc/udev/rules.d/, then plug it in again"


def check() -> Sequence[Finding]:
    """Check the SDK and its USB library, permissions, devices and their modes."""
    try:
        from drivers.realsense import sdk
    except ImportError as missing:
        return [
            Finding("RealSense SDK", Status.FAIL, str(missing), "pip install 'robot-runtime[realsense]'", absent=True)
        ]
    rs = sdk.rs
    detail = f"pyrealsense2 {rs.__version__}, libusb from {sdk.load_libusb()}"
    found = [Finding("RealSense SDK", Status.OK, detail)]
    files = usb_devices(VENDOR, CAMERAS)
    locked = [str(file) for file in files if not os.access(file, os.W_OK)]
    if locked:
        return [*found, Finding("device", Status.FAIL, f"no permission for {', '.join(locked)}", RULES)]
    devices = list(rs.context().query_devices())
    if not devices:
        return [*found, Finding("device", Status.WARN, "none is connected", "plug it into a USB 3 port", absent=True)]
    return [*found, *(finding for device in devices for finding in device_findings(device))]


def device_findings(device: object) -> list[Finding]:
    """Return the findings about one device: name, USB version, firmware, modes."""
    from drivers.realsense.modes import device_modes
    from drivers.realsense.sdk import rs
    from drivers.realsense.source import device_info

    name = f"{device_info(device, rs.camera_info.name)} {device_info(device, rs.camera_info.serial_number)}"
    usb = device_info(device, rs.camera_info.usb_type_descriptor)
    firmware = device_info(device, rs.camera_info.firmware_version)
    modes = device_modes(device.query_sensors())  # type: ignore[attr-defined]
    slow = usb.startswith("2")
    listed = "; ".join(
        f"{sensor} " + ", ".join(f"{mode.name}@{mode.rate_hz:.0f}" for mode in modes if mode.sensor == sensor)
        for sensor in ("color", "depth")
    )
    return [
        Finding(
            name,
            Status.FAIL if slow else Status.OK,
            f"on USB {usb or '?'}, firmware {firmware or '?'}",
            "plug it into a USB 3 port with a USB 3 cable: over USB 2 it has small modes only" if slow else "",
        ),
        Finding("modes", Status.OK, listed),
    ]
