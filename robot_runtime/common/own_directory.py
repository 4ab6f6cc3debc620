"""Working directory of foreign code in the runtime's process."""

from __future__ import annotations

import os


class OwnDirectory:
    """Context in which the process works in the directory that its body changed to before, if it did.

    The runtime's directory is the process's again afterwards, so that relative paths (of logs, scenes, robots' files)
    mean the same before and after a policy calls ``os.chdir``. For one thread at a time.
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._runtimes = -1

    def __enter__(self) -> None:
        # A descriptor, because a folder that was renamed or deleted has no path.
        self._runtimes = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        if self._path is not None:
            os.chdir(self._path)

    def __exit__(self, *_: object) -> None:
        try:
            changed = not os.path.samestat(os.stat("."), os.fstat(self._runtimes))
            self._path = os.getcwd() if changed else None
        finally:
            os.fchdir(self._runtimes)
            os.close(self._runtimes)
