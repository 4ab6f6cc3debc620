"""Checks of a computer for an Azure Kinect: ``robot-runtime doctor azure-kinect``."""

import ctypes
import os
from collections.abc import Sequence

from drivers.azure_kinect import sdk_transform
from drivers.azure_kinect.sdk import DEPTH_ENGINE, INSTALL, Sdk, find_libraries, load_sdk
from robot_runtime.common.host_checks import Finding, Status, usb_devices
from robot_runtime.errors import DriverMissing

VENDOR, CAMERAS = "045e", ("097c", "097d")
RULES = "sudo cp drivers/azure_kinect/99-k4a.rules /etc/udev/rules.d/, then plug it in again"


def check() -> Sequence[Finding]:
    """Check the libraries, the depth engine and its OpenGL, permissions, and devices."""
    try:
        paths = find_libraries()
        sdk = load_sdk()
    except DriverMissing as missing:
        return [Finding("Kinect SDK", Status.FAIL, missing.message, INSTALL, absent=True)]
    found = [Finding("Kinect SDK", Status.OK, f"libk4a and libk4arecord in {sdk.folder}")]
    try:
        ctypes.CDLL(str(paths[DEPTH_ENGINE]))
    except OSError as error:
        found.append(
            Finding(
                "depth engine",
                Status.FAIL,
                f"{error}; recordings can be read without it, live depth cannot be computed",
                "sudo apt-get install -y libgl1 libx11-6",
            )
        )
    else:
        found += [Finding("depth engine", Status.OK, paths[DEPTH_ENGINE].name), _opengl()]
    return [*found, *_devices(sdk)]


def _opengl() -> Finding:
    answer, screen = sdk_transform.measure_in_subprocess(1), os.environ.get("DISPLAY")
    if "milliseconds" in answer:
        works = f"works on {screen}" if screen else "works on a screen of Xvfb; start the robot with xvfb-run"
        return Finding("OpenGL for live depth", Status.OK, works)
    where = f"DISPLAY is {screen}" if screen else "there is no DISPLAY"
    return Finding(
        "OpenGL for live depth",
        Status.FAIL,
        f"{where}: {answer['reason']}; recordings can be read without it",
        "run an X server with OpenGL 4.4 on the robot and set DISPLAY; or apt-get install xvfb, and use xvfb-run",
    )


def _devices(sdk: Sdk) -> list[Finding]:
    count = sdk.k4a.k4a_device_get_installed_count()
    sdk.last_error()
    files = usb_devices(VENDOR, CAMERAS)
    if not files and not count:
        remedy = "plug it into USB 3 and its own power supply"
        return [Finding("device", Status.WARN, "none is connected", remedy, absent=True)]
    locked = [str(file) for file in files if not os.access(file, os.W_OK)]
    if locked:
        return [Finding("device", Status.FAIL, f"no permission for {', '.join(locked)}", RULES)]
    return [Finding("device", Status.OK, f"{count} connected")]
