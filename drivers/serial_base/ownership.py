"""Exclusive ownership of a base: a lock that ends with its process, and the end of an owner that nobody controls."""

import fcntl
import os
import signal
from pathlib import Path

from drivers.serial_wire.port import PortInUse, port_in_use
from robot_runtime.errors import DeviceFault

PROGRAM = "drivers.serial_base"
"""Module that a guard process runs, in its command line; the last argument there is the process id of its runtime."""

LOST_STATES = ("T", "t", "Z", "X")
"""States of a process in ``/proc`` in which it can stop no wheels: stopped, traced, dead."""


class OwnerLock:
    """Lock of the base at a port, whatever its connection is: a network device has none of its own.

    Args:
        path: path of the lock file; empty for no lock.
        port: port, for messages.
    """

    def __init__(self, path: str, port: str) -> None:
        self._path, self._port = path, port
        self._file: int | None = None

    def take(self) -> None:
        """Become the owner, if this process is not.

        Raises:
            PortInUse: another process is the owner; the error names it.
            DeviceFault: the file cannot be made.
        """
        while self._path and self._file is None:
            try:
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise DeviceFault(
                    f"{self._path}: cannot be made: {error.strerror or error}; it is the lock of {self._port}",
                    "make room on the disk, or let XDG_STATE_HOME name a folder that may be written",
                ) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(file)
                raise port_in_use(self._port, self._path) from error
            if _is_at(file, self._path):
                self._file = file
            else:  # the owner before has removed it meanwhile
                os.close(file)

    def release(self) -> None:
        """Let another process become the owner."""
        if self._file is not None:
            Path(self._path).unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def process_state(process: int) -> tuple[str, int]:
    """Return the state of a process in ``/proc`` and its parent; ``X`` and 0 if there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "X", 0
    state, parent, *_ = stat.rpartition(")")[2].split()
    return state, int(parent)


def end_orphan(in_use: PortInUse, at_once: bool) -> str:
    """End the guard process that has a port, if its runtime has ended and it does not end by itself.

    Args:
        in_use: error that names the process.
        at_once: whether only a process that can do nothing any more is ended: one that works sends its last zeros.

    Returns:
        Description of the process that was ended; empty if none was.
    """
    guard = in_use.holder
    try:
        arguments = Path(f"/proc/{guard}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")[:-1]
    except OSError:
        return ""
    state, parent = process_state(guard)
    if PROGRAM not in arguments or str(parent) == arguments[-1] or (at_once and state not in LOST_STATES):
        return ""
    try:
        os.kill(guard, signal.SIGKILL)
    except OSError:
        return ""  # ended meanwhile, or of another user
    stopped = "was stopped" if state in LOST_STATES else "did not end"
    return f"guard process {guard} of a runtime that has ended (process {arguments[-1]}) {stopped}"
