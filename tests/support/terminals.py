"""Commands in a terminal of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

LIMIT_S = 60.0


def start(arguments: list[str], terminal: int) -> subprocess.Popen[bytes]:
    """The command as the leader of a session with this controlling terminal, as a terminal emulator starts it."""
    program = "import fcntl, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    program += "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # else ignored where nohup runs the tests
    program += "from robot_runtime.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)


def read_until(terminal: int, text: bytes) -> bytes:
    """All output up to ``text``, or to the end of the program, whichever comes first."""
    output = b""
    with suppress(OSError):  # by which Linux reports that no program has the terminal open any longer
        while text not in output:
            output += os.read(terminal, 4096)
    return output
