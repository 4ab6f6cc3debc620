"""Working directory and exits of foreign code in the runtime's process."""

import os
import threading
from typing import NoReturn

_EXIT = os._exit


class OwnDirectory:
    """Context in which the process works in the directory that its body changed to before, if it did.

    The runtime's directory is the process's again afterwards, so that relative paths (of logs, scenes, robots' files)
    mean the same before and after a policy calls ``os.chdir``. ``os._exit`` of the body's thread raises ``SystemExit``
    instead of ending the runtime's process, as ``sys.exit`` does. For one thread at a time.
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._runtimes = -1

    def __enter__(self) -> None:
        # A descriptor, because a folder that was renamed or deleted has no path.
        self._runtimes = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        if self._path is not None:
            os.chdir(self._path)
        self._body = (os.getpid(), threading.get_ident())
        os._exit = self._raise_exit

    def __exit__(self, *_: object) -> None:
        os._exit = _EXIT
        try:
            changed = not os.path.samestat(os.stat("."), os.fstat(self._runtimes))
            self._path = os.getcwd() if changed else None
        finally:
            os.fchdir(self._runtimes)
            os.close(self._runtimes)

    def _raise_exit(self, status: int) -> NoReturn:
        if self._body != (os.getpid(), threading.get_ident()):  # a forked child's, or the runtime's own
            _EXIT(status)
        raise SystemExit(f"os._exit({status})")
