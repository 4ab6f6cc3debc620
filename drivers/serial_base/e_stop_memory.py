"""Memory of the emergency stop across guard processes: a file that exists while it is engaged.

Without it, whoever restarts the runtime after a crash would release a stop that somebody has engaged at the robot.
"""

import os
from pathlib import Path
from urllib.parse import quote

from robot_runtime.errors import DeviceFault

TEXT = "The emergency stop is engaged. It is released by the key r, or by: robot-runtime stop --release\n"


def memory_path(port: str) -> str:
    """Return the path of the file for the base at a port."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return str(folder / "robot-runtime" / "emergency-stops" / quote(port, safe=""))


class EStopMemory:
    """The file of a base.

    Args:
        path: path of the file; empty remembers nothing.

    Attributes:
        engaged: whether the stop is engaged as far as is remembered.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self.engaged = self._path is not None and self._path.exists()

    def note(self, engaged: bool) -> None:
        """Remember a change. Raises ``DeviceFault`` if that is impossible."""
        if engaged is self.engaged:
            return
        self.engaged = engaged
        if self._path is None:
            return
        try:
            if engaged:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.write_text(TEXT, encoding="utf-8")
            else:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            raise DeviceFault(
                f"{self._path}: cannot be written: {error.strerror or error}; the emergency stop is "
                f"{'engaged' if engaged else 'released'}, but the next start will not know it",
                "make room on the disk, or let XDG_STATE_HOME name a folder that may be written",
            ) from error
