"""What long work has finished, a line each in a file, so that the same command goes on where it was ended.

The first line says what the results depend on; a ledger of other settings is never mixed with these. A line is written
whole or not at all, but for the last one of a machine that lost its power, which is cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic

from typing_extensions import Self

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import ConfigError, RecordingError, writing
from robot_runtime.parallel.engine import Lost, R, T

SCHEMA = 1
SYNC_S = 1.0
"""So much work at most is lost with the machine; with the process, none that was finished."""


_START = b'{"ledger":'


class Ledger(Generic[T, R]):
    """A file of finished results; a context, for one command at a time.

    Args:
        path: made if it is missing, in a folder that exists.
        settings: everything that results depend on beside their item, as JSON.
        key: what tells an item from any other, and from itself where it has changed: see :func:`file_key`.
        encode, decode: a result as JSON, or None for one that is better tried again; and back, without loss.
        overwrite: begin anew.

    Raises:
        ConfigError: the file is no ledger, of other settings, or in use; says which.
        RecordingError: it is damaged, or cannot be written.
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has(self, item: T) -> bool:
        """Whether the item's result is there."""
        return self._key(item) in self._places

    def results(
        self,
        items: Sequence[T],
        lost: Callable[[T, Lost], R],
        work: Callable[[Sequence[T], Callable[[T, Lost], R]], Iterator[R]],
    ) -> Iterator[R]:
        """Results of all items in order: from here what is here, the others from ``work``, and kept as they come.

        What ``lost`` says of an item is not kept: the next command tries it again.
        """
        keys = [self._key(item) for item in items]
        gone: set[str] = set()

        def note(item: T, how: Lost) -> R:
            gone.add(self._key(item))
            return lost(item, how)

        new = work([item for item, key in zip(items, keys, strict=True) if key not in self._places], note)
        for key in keys:
            if key in self._places:
                yield self._read(self._places[key])
                continue
            result = next(new)
            data = None if key in gone else self._encode(result)
            if data is not None:
                self._write({"key": key, "result": data})
            yield result

    def close(self) -> None:
        """Everything is on the disk. A second time does nothing."""
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
                f"{self.path}: another command is writing it", "wait for its end, or name another file"
            ) from error
        first = self._first_line()
        if first is None or overwrite:
            os.ftruncate(self._file, 0)
            self._write({"ledger": SCHEMA, "settings": settings})
            return
        if first["settings"] != settings:
            raise ConfigError(
                f"{self.path}: holds results of other settings: {_differences(first['settings'], settings)}",
                "name another file, or give --overwrite to begin anew",
            )
        self._find_places()

    def _first_line(self) -> dict[str, Any] | None:
        """What the file says of itself; None of one that is empty, or was ended before it said anything."""
        with open(self.path, "rb") as file:
            line = file.readline()
        if not line or (not line.endswith(b"\n") and _START.startswith(line[: len(_START)])):
            return None
        try:
            document = json.loads(line)
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.get("ledger") != SCHEMA or "settings" not in document:
            raise ConfigError(f"{self.path}: is no ledger", "name another file")
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
                f"{self.path}: line {number} is damaged", "delete the line, or give --overwrite to begin anew"
            ) from error

    def _read(self, place: tuple[int, int]) -> R:
        return self._decode(json.loads(os.pread(self._file, place[1], place[0]))["result"])

    def _write(self, document: dict[str, Any]) -> None:
        line = json.dumps(document, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        with writing(self.path):
            start = os.lseek(self._file, 0, os.SEEK_END)
            if os.write(self._file, line) < len(line):  # the disk is full, which the next write would have said
                os.ftruncate(self._file, start)
                raise RecordingError(f"{self.path}: the disk is full", "free space, and repeat the command")
            if self._since_sync.elapsed_s() > SYNC_S:
                os.fsync(self._file)
                self._since_sync.restart()
        if "key" in document:
            self._places[document["key"]] = start, len(line)


def file_key(path: Path) -> str:
    """A file as it is now: where it lies, its size, and when it was last changed."""
    state = path.stat()
    return f"{path.resolve()} {state.st_size} {state.st_mtime_ns}"


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    return "; ".join(
        f"{name} {json.dumps(theirs.get(name))} there, {json.dumps(ours.get(name))} here" for name in names
    )
