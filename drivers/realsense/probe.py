"""Checks of a recording before the SDK opens it: the SDK (2.58.4) crashes or waits forever on some damaged ones.

A rotation of eight numbers, for instance, ends the process by SIGSEGV when the file is opened. So a recording is tried
in a process of its own: opening it and its first images, not messages further on.

The SDK waits forever for a topic that a damaged ``.db3`` lacks. Such a recording is an SQLite file with the tables
``topics`` and ``messages`` (rosbag2). For each option of a sensor, the SDK reads a topic ``…/option/NAME/value`` and
then its counterpart ``…/description``.
"""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import cache
from pathlib import Path

from robot_runtime.errors import DeviceFault

LIMIT_S = 30.0
FIRST_FRAMES_MS = 2000

MAX_TOPICS = 10_000
_SQLITE = b"SQLite format 3\0"
_NAME = re.compile(r"(/[A-Za-z0-9_.+-]+)+")
_TYPE = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+){1,2}")
_REMEDY = "name a complete .db3 or .bag file with color and depth in 'file'; a truncated file cannot be repaired"


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


def check_topics(path: Path) -> None:
    """Raise ``DeviceFault`` for a ``.db3`` file whose list of topics is damaged; other files are the SDK's to judge."""
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                return
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT name, type, id FROM topics").fetchmany(MAX_TOPICS)
            filled = {row[0] for row in database.execute("SELECT DISTINCT topic_id FROM messages")}
    except (OSError, sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise DeviceFault(f"{path}: cannot be read: {error}", _REMEDY) from error
    names = {name for name, _, number in rows if number in filled}
    for name, kind, _ in rows:
        if not (isinstance(name, str) and _NAME.fullmatch(name) and isinstance(kind, str) and _TYPE.fullmatch(kind)):
            raise DeviceFault(f"{path}: is damaged: it has a topic {name!r:.80} of type {kind!r:.80}", _REMEDY)
        option, _, part = name.rpartition("/")
        other = f"{option}/{'description' if part == 'value' else 'value'}"
        if "/option/" in option and (part not in ("value", "description") or other not in names):
            raise DeviceFault(f"{path}: is damaged: topic {name} is there without {other}", _REMEDY)


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
