"""Checks of a computer for a Pebble: ``robot-runtime doctor pebble``."""

import os
from collections.abc import Sequence
from pathlib import Path

from robot_runtime.common.host_checks import Finding, Status

PORT = Path("/dev/ttyUSB0")


def check() -> Sequence[Finding]:
    """Check the serial port; a missing device is a finding, not an exception."""
    if not PORT.exists():
        return [Finding("port", Status.WARN, f"{PORT} does not exist", "connect the base")]
    if not os.access(PORT, os.W_OK):
        return [Finding("port", Status.FAIL, f"no permission for {PORT}", "add yourself to the group dialout")]
    return [Finding("port", Status.OK, str(PORT))]
