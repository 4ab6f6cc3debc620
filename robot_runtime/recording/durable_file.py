"""Append-only file whose content survives a killed process."""

import errno
import os
from pathlib import Path

from robot_runtime.common.clock import Stopwatch

_PARTS = os.sysconf("SC_IOV_MAX")


class DurableFile:
    """Append-only file without a buffer in the process: data survive ``kill -9`` once ``write`` has returned.

    Args:
        path: path of the new file, which must not exist.
        sync_s: interval of :meth:`sync_if_due`, after which data survive a power failure.

    Raises:
        OSError: from every method, as reported by the operating system; ``FileNotFoundError`` from :meth:`sync` if the
            file is no longer where it was created, because what is written to it is lost with the process.
    """

    def __init__(self, path: Path, sync_s: float) -> None:
        # Absolute, because foreign code may change the working directory while another thread syncs.
        self._path = path.absolute()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._size = 0
        self._synced_size = 0
        self._sync_s = sync_s
        self._since_sync = Stopwatch()
        # The file's name must survive a power failure, too.
        sync_folder(path.parent)

    def write(self, *parts: bytes | memoryview) -> int:
        """Write all bytes of all parts to the operating system; return their number."""
        total = sum(map(len, parts))
        left, end = [memoryview(part) for part in parts if part], self._size + total
        while self._size < end:
            written = os.writev(self._fd, left[:_PARTS])
            self._size += written
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if written:
                left[0] = left[0][written:]
        return total

    def tell(self) -> int:
        """Number of bytes written so far."""
        return self._size

    def sync_if_due(self) -> None:
        """Sync if there are new data and the last sync was ``sync_s`` ago."""
        if self._size != self._synced_size and self._since_sync.elapsed_s() >= self._sync_s:
            self.sync()

    def sync(self) -> None:
        """Write everything to the disk (fsync)."""
        os.fsync(self._fd)
        self._check_place()
        self._synced_size = self._size
        self._since_sync.restart()

    def close(self) -> None:
        """Close the file without a sync."""
        os.close(self._fd)

    def _check_place(self) -> None:
        """Raise ``FileNotFoundError`` if the file was deleted or moved: the system continues to write to it."""
        try:
            here = os.path.samestat(os.stat(self._path), os.fstat(self._fd))
        except FileNotFoundError:
            here = False
        if not here:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._path))


def sync_folder(folder: Path) -> None:
    """Write a folder's list of names to the disk. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
