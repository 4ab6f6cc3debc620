"""Checks of `robot-runtime doctor`: each package registers one for what it needs of the computer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from robot_runtime.common.plugins import Registry
from robot_runtime.errors import PluginError

USB = Path("/sys/bus/usb/devices")


class Status(str, Enum):
    """Whether a thing can be used. ``FAIL`` prevents use; ``WARN``: a device or an extra is missing, or a risk."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check.

    Attributes:
        what: the thing that was checked.
        status: status of the thing.
        detail: the observation.
        remedy: fix for the user; empty where all is well.
        absent: whether the device, or the library that reaches it, is not there: no fault unless it was asked for.
    """

    what: str
    status: Status
    detail: str
    remedy: str = ""
    absent: bool = False


Check = Callable[[], Sequence[Finding]]
"""Check of a subject; takes a few seconds at most, changes nothing and never raises for a missing thing."""

NO_DEVICES = ("sim", "computer")
"""Subjects that are no devices, which come first."""

CHECKS: Registry[Check] = Registry("robot_runtime.doctor", "subject of doctor")
"""Checks by the name of their subject (``azure-kinect``)."""


def examine(names: Sequence[str] = ()) -> dict[str, Sequence[Finding]]:
    """The findings on these subjects, or on all; a package that cannot be used is a finding on its subject.

    Raises:
        ConfigError: nobody offers a subject of that name.
    """
    return {name: _findings(name) for name in names or [*NO_DEVICES, *sorted(set(CHECKS) - {*NO_DEVICES})]}


def _findings(name: str) -> Sequence[Finding]:
    try:
        check = CHECKS.load(name)
    except PluginError as error:
        return [Finding("package", Status.FAIL, error.message, error.remedy)]
    return check()


def usb_devices(vendor: str, products: Sequence[str], root: Path = USB) -> list[Path]:
    """The files under ``/dev/bus/usb`` of the devices with these ids, each of four hexadecimal digits."""
    nodes = []
    for folder in sorted(root.glob("*")):
        try:
            ids = [(folder / name).read_text(encoding="ascii").strip() for name in ("idVendor", "idProduct")]
            numbers = [int((folder / name).read_text(encoding="ascii")) for name in ("busnum", "devnum")]
        except (OSError, ValueError):  # an interface, or one that was just unplugged
            continue
        if ids[0] == vendor and ids[1] in products:
            nodes.append(Path(f"/dev/bus/usb/{numbers[0]:03d}/{numbers[1]:03d}"))
    return nodes
