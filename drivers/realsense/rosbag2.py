"""Consistency check of ``.db3`` recordings, because the SDK waits forever for a topic that a damaged one lacks.

A recording is an SQLite file with the tables ``topics`` and ``messages`` (rosbag2). For each option of a sensor, the
SDK (2.58.4) reads a topic ``…/option/NAME/value`` and then its counterpart ``…/description``.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from robot_runtime.errors import DeviceFault

MAX_TOPICS = 10_000
_SQLITE = b"SQLite format 3\0"
_NAME = re.compile(r"(/[A-Za-z0-9_.+-]+)+")
_TYPE = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+){1,2}")
_REMEDY = "name a complete .db3 or .bag file with color and depth in 'file'; a truncated file cannot be repaired"


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
