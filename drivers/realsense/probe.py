"""Trial of a recording in a process of its own, because the SDK (2.58.4) crashes on some damaged ones.

A rotation of eight numbers, for instance, ends the process by SIGSEGV when the file is opened. Opening it and its first
images are tried; messages further on are not.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from robot_runtime.errors import DeviceFault

LIMIT_S = 30.0
FIRST_FRAMES_MS = 2000


def probe(path: Path) -> None:
    """Raise ``DeviceFault`` if the SDK crashes on a recording, or does not come back; other faults are left to it."""
    try:
        stat = path.stat()
    except OSError:  # the SDK says what is wrong
        return
    _probe(path, stat.st_size, stat.st_mtime_ns)


@cache
def _probe(path: Path, size: int, mtime_ns: int) -> None:
    """Try a file once for its present content."""
    remedy = "name a complete recording in 'file'; a damaged recording cannot be repaired"
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(path)], capture_output=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise DeviceFault(f"{path}: is damaged: the SDK does not open it within {LIMIT_S:g} s", remedy) from error
    if done.returncode < 0:
        raise DeviceFault(f"{path}: is damaged: the SDK crashes on it (signal {-done.returncode})", remedy)


def main(path: str) -> None:
    """Open a recording and wait for its first images."""
    from drivers.realsense.sdk import rs

    pipeline, streams = rs.pipeline(rs.context()), rs.config()
    try:
        streams.enable_device_from_file(path, repeat_playback=False)
        pipeline.start(streams).get_device().as_playback().set_real_time(False)
        pipeline.wait_for_frames(FIRST_FRAMES_MS)
        pipeline.stop()
    except RuntimeError as error:  # the caller's SDK says the same
        print(error)


if __name__ == "__main__":
    main(sys.argv[1])
