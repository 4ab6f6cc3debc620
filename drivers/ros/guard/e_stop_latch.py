"""Memory of the emergency stop across restarts of the guard: one file on the robot's disk.

The file exists while the guard runs, and stays unless the guard ends in order with the stop released. Whoever ends it
otherwise (``kill -9``, a crash, a power failure) thereby leaves it engaged, and nothing is written while it runs.
"""

from __future__ import annotations

import os
from pathlib import Path

from robot_runtime.errors import ConfigError

TEXT = "The guard runs, or its emergency stop is engaged. Without this file the next guard starts with it released.\n"

LEFT_ENGAGED = "engaged since the guard's last run, which ended with it engaged or was killed"


class EStopLatch:
    """The file.

    Args:
        path: On a disk that survives a restart of the computer; folders are created.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self) -> bool:
        """Create the file and return whether the last run has left it: then the stop is engaged.

        Raises:
            ConfigError: The file cannot be written.
        """
        try:
            was_left = self._path.exists()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _write_durably(self._path)
        except OSError as error:
            raise ConfigError(
                f"e_stop_file: {self._path} cannot be written: {error.strerror or error}",
                "name a file that the guard's user may write in the parameter e_stop_file, or set ROS_HOME",
            ) from error
        return was_left

    def end(self, engaged: bool) -> None:
        """End a run in order: the file stays if the stop is engaged."""
        if not engaged:
            self._path.unlink()


def _write_durably(path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(TEXT)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the file's name
    finally:
        os.close(folder)
