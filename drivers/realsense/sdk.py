"""Intel's RealSense SDK and the USB library that it needs.

``pyrealsense2`` is linked with libusb-1.0, which neither its wheel nor a minimal Debian contains. The package
``libusb-package`` contains it; loaded globally before the SDK, it satisfies the link.
"""

import ctypes
from typing import Any

LIBUSB = "libusb-1.0.so.0"


def load_libusb() -> str:
    """Load libusb, preferably the system's, and return the name that it was loaded by.

    Raises:
        ImportError: neither the system nor ``libusb-package`` has it.
    """
    try:
        ctypes.CDLL(LIBUSB, mode=ctypes.RTLD_GLOBAL)
        return LIBUSB
    except OSError:
        return load_packaged_libusb()


def load_packaged_libusb() -> str:
    """Load libusb from ``libusb-package`` and return its path. Raises ``ImportError``."""
    import libusb_package

    path = libusb_package.get_library_path()
    if path is None:
        raise ImportError("libusb-package has no library for this platform", name="libusb_package")
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    return str(path)


def load_sdk() -> Any:
    """Return the module ``pyrealsense2`` with logging off. Raises ``ImportError``."""
    load_libusb()
    import pyrealsense2

    # It would print every failure in addition to the error that it raises.
    pyrealsense2.log_to_console(pyrealsense2.log_severity.none)
    return pyrealsense2


rs: Any = load_sdk()
"""The module ``pyrealsense2``, whose type stubs are unusable."""
