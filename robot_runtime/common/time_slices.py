"""Short time slices: a thread that waits for events runs soon after its event, on a busy computer, too.

Since version 6.12, Linux lets a thread that has waited interrupt another one only after that one's time slice, of some
milliseconds; a thread may ask for a short slice of its own, without any privilege, and then it waits for no longer than
that (``sched_setattr(2)``, its field ``sched_runtime``). Older versions take the request and ignore it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

SHORT_NS = 100_000
"""The shortest that Linux grants."""

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""Numbers of the system call, which Python has not."""

_ATTRIBUTES = struct.Struct("<IIQiIQQQ")
"""``struct sched_attr``: size, policy, flags, nice, priority, and runtime, deadline and period in nanoseconds."""


def ask_for_slices(slice_ns: int) -> bool:
    """Ask for time slices of a length for this thread, and all threads and processes that it starts from now on.

    Args:
        slice_ns: in nanoseconds; 0 for the system's own.

    Returns:
        Whether the system took the request; False where there is none, or the thread has another scheduling policy.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, slice_ns, 0, 0)
    return ctypes.CDLL(None).syscall(number, 0, ctypes.create_string_buffer(attributes), 0) == 0
