"""Journal of finished results, one line each, from which a repeated command resumes.

The first line holds the settings that the results depend on; results of other settings are never mixed with them. A
line is written completely or not at all, except for the last one before a power failure: it is cut off.
"""

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic

from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.closing import Closing
from robot_runtime.errors import ConfigError, RecordingError, writing
from robot_runtime.parallel.workers import R, T, WorkerLoss

SCHEMA = 1
SYNC_S = 1.0
"""Interval of fsync in seconds: the work that a power failure can lose. A killed process loses no finished result."""

_PREFIX = b'{"ledger":'


class ResultJournal(Closing, Generic[T, R]):
    """A file of finished results; a context, for one command at a time.

    Args:
        path: created if it is missing, in a folder that exists.
        settings: everything besides their item that results depend on, as JSON.
        key: identifies an item and its version: see :func:`file_key`.
        encode: converts a result to JSON; None for one that shall be computed again.
        decode: the inverse of ``encode``, without loss.
        overwrite: discard the results that the file has.

    Raises:
        ConfigError: the file is not a journal, has other settings, or is in use.
        RecordingError: the file is damaged, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        key: Callable[[T], str],
        encode: Callable[[R], Any],
        decode: Callable[[Any], R],
        overwrite: bool = False,
    ) -> None:
        self.path = path
        self._key, self._encode, self._decode = key, encode, decode
        self._places: dict[str, tuple[int, int]] = {}
        with writing(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._since_sync = Stopwatch()
        try:
            self._open(json.loads(json.dumps(settings)), overwrite)
        except BaseException:
            os.close(self._file)
            raise

    def has(self, item: T) -> bool:
        """Whether the journal has the item's result."""
        return self._key(item) in self._places

    def results(
        self,
        items: Sequence[T],
        lost_result: Callable[[T, WorkerLoss], R],
        compute: Callable[[Sequence[T], Callable[[T, WorkerLoss], R]], Iterator[R]],
    ) -> Iterator[R]:
        """Yield the results of all items in order: stored ones from the file, the others from ``compute``.

        Args:
            items: the work.
            lost_result: makes the result of an item that cost its workers; it is not stored, so that the next command
                tries the item again.
            compute: yields the results of items, given a function like ``lost_result``.
        """
        keys = [self._key(item) for item in items]
        lost_keys: set[str] = set()

        def note_lost(item: T, reason: WorkerLoss) -> R:
            lost_keys.add(self._key(item))
            return lost_result(item, reason)

        new = compute([item for item, key in zip(items, keys, strict=True) if key not in self._places], note_lost)
        for key in keys:
            if key in self._places:
                yield self._read(self._places[key])
                continue
            result = next(new)
            data = None if key in lost_keys else self._encode(result)
            if data is not None:
                self._write({"key": key, "result": data})
            yield result

    def close(self) -> None:
        """Write everything to the disk and close the file. A second call does nothing."""
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def _open(self, settings: dict[str, Any], overwrite: bool) -> None:
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise ConfigError(f"{self.path}: is not a file", "name another")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                f"{self.path}: another command is writing it", "wait until it ends, or name another file"
            ) from error
        first = self._first_line()
        if first is None or overwrite:
            os.ftruncate(self._file, 0)
            self._write({"ledger": SCHEMA, "settings": settings})
            return
        if first["settings"] != settings:
            raise ConfigError(
                f"{self.path}: holds results of other settings: {_differences(first['settings'], settings)}",
                "name another file, or give --overwrite to discard them",
            )
        self._find_places()

    def _first_line(self) -> dict[str, Any] | None:
        """The header; None of a file that is empty or ends within its first line."""
        with open(self.path, "rb") as file:
            line = file.readline()
        if not line or (not line.endswith(b"\n") and _PREFIX.startswith(line[: len(_PREFIX)])):
            return None
        try:
            document = json.loads(line)
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.get("ledger") != SCHEMA or "settings" not in document:
            raise ConfigError(f"{self.path}: is not a journal of results", "name another file")
        return document

    def _find_places(self) -> None:
        start = 0
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    os.ftruncate(self._file, start)
                    return
                if number > 1:
                    self._places[self._key_of(line, number)] = start, len(line)
                start += len(line)

    def _key_of(self, line: bytes, number: int) -> str:
        try:
            return str(json.loads(line)["key"])
        except (ValueError, KeyError, TypeError) as error:
            raise RecordingError(
                f"{self.path}: line {number} is damaged", "delete the line, or give --overwrite to discard all"
            ) from error

    def _read(self, place: tuple[int, int]) -> R:
        return self._decode(json.loads(os.pread(self._file, place[1], place[0]))["result"])

    def _write(self, document: dict[str, Any]) -> None:
        line = json.dumps(document, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        with writing(self.path):
            start = os.lseek(self._file, 0, os.SEEK_END)
            if os.write(self._file, line) < len(line):  # a short write: the disk is full
                os.ftruncate(self._file, start)
                raise RecordingError(f"{self.path}: the disk is full", "free space, and repeat the command")
            if self._since_sync.elapsed_s() > SYNC_S:
                os.fsync(self._file)
                self._since_sync.restart()
        if "key" in document:
            self._places[document["key"]] = start, len(line)


def file_key(path: Path) -> str:
    """Key of a file's current version: its path, size and time of change."""
    state = path.stat()
    return f"{path.resolve()} {state.st_size} {state.st_mtime_ns}"


def _differences(stored: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    names = [name for name in {**stored, **current} if stored.get(name) != current.get(name)]
    return "; ".join(
        f"{name} {json.dumps(stored.get(name))} there, {json.dumps(current.get(name))} here" for name in names
    )
