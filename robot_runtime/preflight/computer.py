"""Checks of the robot's computer: ``robot-runtime doctor computer``."""

import ctypes
import os
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from robot_runtime.common.host_checks import Finding, Status

MIN_FREE_GB, LOW_FREE_GB = 1.0, 10.0
"""An episode's log with images has some hundred megabytes."""

_TIMEX_BYTES = 512
_STATUS = struct.Struct("=40xi")  # struct timex of 64-bit Linux: modes, offset, freq, maxerror, esterror, status
_UNSYNCHRONIZED = 0x40


def check() -> Sequence[Finding]:
    """Check the disk, the clock, and whether a process may have real-time priority."""
    return [disk(Path.cwd()), clock(), _priority()]


def disk(folder: Path) -> Finding:
    """Check the free space of a folder for logs."""
    free_gb = shutil.disk_usage(folder).free / 1e9
    detail = f"{free_gb:.1f} GB free at {folder}"
    status = Status.FAIL if free_gb < MIN_FREE_GB else Status.WARN if free_gb < LOW_FREE_GB else Status.OK
    remedy = "" if status is Status.OK else "move logs away, or start in a folder on another disk"
    return Finding("disk", status, detail, remedy)


def clock() -> Finding:
    """Check that this computer's clock is kept right: logs and calibrations carry its time."""
    state = ctypes.create_string_buffer(_TIMEX_BYTES)
    library = ctypes.CDLL(None, use_errno=True)
    if library.adjtimex(state) < 0:
        return Finding("clock", Status.WARN, os.strerror(ctypes.get_errno()), "check it by hand: `timedatectl`")
    (status,) = _STATUS.unpack_from(state.raw)
    if status & _UNSYNCHRONIZED:
        remedy = (
            "connect it to a network and run `sudo timedatectl set-ntp true`; on a robot without one, set it by hand"
        )
        return Finding("clock", Status.WARN, "is not synchronized", remedy)
    return Finding("clock", Status.OK, "is synchronized")


def _priority() -> Finding:
    what, limit = "real-time priority", _rtprio()
    if os.geteuid() == 0 or limit > 0:
        return Finding(what, Status.OK, "is permitted")
    remedy = "optional: add '@dialout - rtprio 50' to /etc/security/limits.d/robot.conf and log in again"
    return Finding(what, Status.WARN, "is not permitted: drivers run without it", remedy)


def _rtprio() -> int:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_RTPRIO)[1] if hasattr(resource, "RLIMIT_RTPRIO") else 0
    return 99 if hard == resource.RLIM_INFINITY else hard
