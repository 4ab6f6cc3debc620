"""Checks of serial ports and udev rules: ``robot-runtime doctor hardware``."""

import os
from collections.abc import Iterator, Sequence

from robot_runtime.common.host_checks import Finding, Status

GOOD_LATENCY_MS = 2


def check() -> Sequence[Finding]:
    """Check the library, the udev rules, and every serial port: permission and latency timer."""
    try:
        from drivers.hardware.ports import usb_ports
    except ImportError as missing:
        return [Finding("pyserial", Status.FAIL, str(missing), "pip install 'robot-runtime[marvelmind]'", absent=True)]
    ports = usb_ports().values()
    found = [*_rules(), *(finding for port in ports for finding in port_findings(port.path, str(port)))]
    none = Finding("serial ports", Status.WARN, "none is connected", "plug the robot in", absent=True)
    return found if ports else [*found, none]


def _rules() -> Iterator[Finding]:
    from drivers.hardware.udev import rule_files

    for file in rule_files():
        state = file.state()
        good = state == "installed"
        remedy = "" if good else "sudo robot-runtime hardware udev --install, if the robot has such a device"
        yield Finding(f"udev rule {file.path.name}", Status.OK if good else Status.WARN, state, remedy)


def port_findings(path: str, name: str) -> list[Finding]:
    """Return the findings about one port."""
    from drivers.hardware.ports import latency_timer_ms

    if not os.access(path, os.R_OK | os.W_OK):
        remedy = "sudo robot-runtime hardware udev --install, or sudo usermod -aG dialout $USER and log in again"
        return [Finding(name, Status.FAIL, "no permission", remedy)]
    timer_ms = latency_timer_ms(path)
    if timer_ms is None:
        return [Finding(name, Status.OK, "may be opened")]
    if timer_ms > GOOD_LATENCY_MS:
        remedy = "sudo robot-runtime hardware udev --install: every reply comes up to that much later"
        return [Finding(name, Status.WARN, f"its latency timer is {timer_ms} ms", remedy)]
    return [Finding(name, Status.OK, f"may be opened; its latency timer is {timer_ms} ms")]
