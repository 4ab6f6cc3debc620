"""Import of Open3D, an optional library (extra ``mesh``) that fused meshes need and maps do not."""

import importlib
from typing import Any

from robot_runtime.errors import ConfigError


def open3d() -> Any:
    """The module, with its messages switched off.

    Raises:
        ConfigError: it is not installed, or the system lacks a library of it.
    """
    try:
        library = importlib.import_module("open3d")
    except ModuleNotFoundError as error:
        if error.name != "open3d":
            raise
        raise ConfigError(
            "a mesh is fused by Open3D; it is not installed",
            "pip install 'robot-runtime[mesh]', or make the map alone with --no-mesh",
        ) from error
    except (ImportError, OSError) as error:  # ctypes raises OSError for a missing library
        raise ConfigError(
            f"Open3D cannot be loaded: {error}",
            "apt-get install -y libx11-6 libgl1 libegl1 libusb-1.0-0 libudev1, or make the map alone with --no-mesh",
        ) from error
    # Its messages go to stdout, as this program's results do.
    library.utility.set_verbosity_level(library.utility.VerbosityLevel.Error)
    return library
