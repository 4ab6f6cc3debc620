"""Intel's SDK, and the USB library that it needs.

``pyrealsense2`` is linked with libusb-1.0, which its wheel does not bring and a bare Debian does not have. The package
``libusb-package`` has it; loaded first, for all, it is the one that the SDK finds.
"""

from __future__ import annotations

import ctypes
from typing import Any

LIBUSB = "libusb-1.0.so.0"


def load_libusb() -> str:
    """Make libusb known to the process and return the name that it was loaded by: the system's one if there is one.

    Raises:
        ImportError: neither the system nor ``libusb-package`` has it.
    """
    try:
        ctypes.CDLL(LIBUSB, mode=ctypes.RTLD_GLOBAL)
        return LIBUSB
    except OSError:
        return load_packaged_libusb()


def load_packaged_libusb() -> str:
    """The same from ``libusb-package``, whatever the system has. Raises ``ImportError``."""
    import libusb_package

    path = libusb_package.get_library_path()
    if path is None:
        raise ImportError("libusb-package has no library for this platform", name="libusb_package")
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    return str(path)


def load_sdk() -> Any:
    """The module ``pyrealsense2``, silent on the terminal. Raises ``ImportError``."""
    load_libusb()
    import pyrealsense2

    # It would print every failure once more, beside the error that it raises.
    pyrealsense2.log_to_console(pyrealsense2.log_severity.none)
    return pyrealsense2


rs: Any = load_sdk()
"""``pyrealsense2``; it has no type stubs that hold."""
