"""A file that keeps what was written to it, whoever is killed."""

from __future__ import annotations

import os
from pathlib import Path

from robot_runtime.common.clock import Stopwatch


class DurableFile:
    """An append-only file without any buffer of ours: what ``write`` returned from survives ``kill -9``.

    It deliberately is no ``io.RawIOBase``: the MCAP library would wrap that in a buffer again.

    Args:
        path: created; must not exist.
        sync_s: :meth:`sync_if_due` asks the disk to keep what it has (survives power loss) when this much time passed.

    Raises:
        OSError: from every method, as the operating system reports it.
    """

    def __init__(self, path: Path, sync_s: float) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._size = 0
        self._synced_size = 0
        self._sync_s = sync_s
        self._since_sync = Stopwatch()
        # The name must survive power loss too.
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def write(self, data: bytes) -> int:
        """Hand all bytes to the operating system."""
        view = memoryview(data)
        while view:
            written = os.write(self._fd, view)
            self._size += written
            view = view[written:]
        return len(data)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._size

    def flush(self) -> None:
        """Nothing is ever held back."""

    def sync_if_due(self) -> None:
        """fsync, if there is something new and the last one was ``sync_s`` ago."""
        if self._size != self._synced_size and self._since_sync.elapsed_s() >= self._sync_s:
            self.sync()

    def sync(self) -> None:
        """fsync."""
        os.fsync(self._fd)
        self._synced_size = self._size
        self._since_sync.restart()

    def close(self) -> None:
        """Release the descriptor; no fsync."""
        os.close(self._fd)
