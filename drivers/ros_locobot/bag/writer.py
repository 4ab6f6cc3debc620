"""A writer of bags: a bag is complete, or does not exist."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from rosbags.interfaces import Connection
from rosbags.rosbag1 import Writer
from typing_extensions import Self

from drivers.ros_locobot.bag.definitions import typestore
from robot_runtime.errors import RecordingError

CALLER = "/robot_runtime"


class BagWriter:
    """One bag, uncompressed: Debian's reader fails on the lz4 of ``rosbags``, and bz2 is slower than a camera.

    Args:
        path: Must not exist. Until :meth:`close` the bag has the suffix ``.part``; after an error it is removed.

    Raises:
        RecordingError: ``path`` exists, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unfinished = path.with_name(f"{path.name}.part")
        if path.exists():
            raise RecordingError(f"{path}: exists already", "give another name, or delete it")
        self._topics: dict[str, tuple[Connection, int]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._unfinished.unlink(missing_ok=True)
            self._writer = Writer(self._unfinished)
            self._writer.open()
        except OSError as error:
            raise self._failed(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if exc is None:
            self.close()
        else:
            self.discard()

    def write(self, topic: str, message: Any, stamp_ns: int, latched: bool = False) -> None:
        """Add a message received at ``stamp_ns``. Raises ``RecordingError`` if the disk is full."""
        try:
            if topic not in self._topics:
                connection = self._writer.add_connection(
                    topic, message.__msgtype__, typestore=typestore(), callerid=CALLER, latching=int(latched)
                )
                self._topics[topic] = (connection, 0)
            connection, count = self._topics[topic]
            if hasattr(message, "header"):
                message.header.seq = count
            data = typestore().serialize_ros1(message, message.__msgtype__)
            # Time 0 means "not set" to ROS, and its recorder refuses it.
            self._writer.write(connection, max(1, stamp_ns), data)
            self._topics[topic] = (connection, count + 1)
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Write the index and rename the bag. Raises ``RecordingError``."""
        try:
            self._writer.close()
            self._unfinished.replace(self.path)
        except OSError as error:
            self.discard()
            raise self._failed(error) from error

    def discard(self) -> None:
        """Remove the unfinished bag."""
        self._writer.abort()
        self._unfinished.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> RecordingError:
        return RecordingError(
            f"{self.path}: cannot be written: {error.strerror or error}", "free disk space, or write elsewhere"
        )
