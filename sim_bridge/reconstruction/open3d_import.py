"""Open3D, where it is installed: fused meshes need it, maps do not. Extra ``mesh``."""

from __future__ import annotations

import importlib
from typing import Any

from robot_runtime.errors import ConfigError


def open3d() -> Any:
    """The module, silent.

    Raises:
        ConfigError: it is not installed, or the system lacks a library of it.
    """
    try:
        library = importlib.import_module("open3d")
    except ModuleNotFoundError as error:
        if error.name != "open3d":
            raise
        raise ConfigError(
            "a mesh is fused by Open3D, which is not installed",
            "pip install 'robot-runtime[mesh]', or make the map alone with --no-mesh",
        ) from error
    except (ImportError, OSError) as error:  # of which the second is how ctypes says that a library is missing
        raise ConfigError(
            f"Open3D cannot be loaded: {error}",
            "apt-get install -y libx11-6 libgl1 libegl1 libusb-1.0-0 libudev1, or make the map alone with --no-mesh",
        ) from error
    # Its notes go to stdout, where this program's results go.
    library.utility.set_verbosity_level(library.utility.VerbosityLevel.Error)
    return library
