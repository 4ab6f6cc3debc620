"""Short time slices: a thread that waits for events runs soon after its event, on a busy computer, too.

On Linux 6.12 and newer, a thread that wakes waits until the one that has the processor has used up its slice of some
milliseconds, or as much as the shortest slice of the two; a thread may ask for a short slice, without any privilege
(``sched_setattr(2)``, field ``sched_runtime``). Older versions take the request and ignore it.
"""

import ctypes
import os
import platform
import struct
import sys

SHORT_NS = 100_000
"""The shortest slice that Linux grants, in nanoseconds."""

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""Number of the system call by machine; Python's ``os`` lacks it."""

_ATTRIBUTES = struct.Struct("<IIQiIQQQ")
"""``struct sched_attr``: size, policy, flags, nice, priority, and runtime, deadline and period in nanoseconds."""


def ask_for_slices(slice_ns: int) -> bool:
    """Ask for time slices of a length for this thread, and all threads and processes that it starts from now on.

    Args:
        slice_ns: length of a slice, in nanoseconds; 0 for the system's own.

    Returns:
        Whether the system took the request. Nothing changes where there is no such call, or if the thread has another
        scheduling policy than the usual one.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, slice_ns, 0, 0)
    result: int = ctypes.CDLL(None).syscall(number, 0, ctypes.create_string_buffer(attributes), 0)
    return result == 0
