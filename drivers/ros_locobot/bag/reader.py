"""A bag being read: what is wrong with it is a typed error that names file, topic and time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from rosbags.interfaces import Connection
from rosbags.rosbag1 import Reader
from rosbags.rosbag1.reader import ReaderError
from rosbags.serde import SerdeError
from rosbags.typesys.msg import denormalize_msgtype
from typing_extensions import Self

from drivers.ros_locobot.bag.definitions import md5_of, stored_name, typestore
from drivers.ros_locobot.bag.errors import DamagedBag, MissingTopic
from drivers.ros_locobot.connection.errors import WrongDefinition
from robot_runtime.common.clock import NS_PER_S, ns_to_seconds
from robot_runtime.errors import RecordingError

# What the library lets through when it meets bytes that no recorder wrote; RuntimeError is lz4's.
_NONSENSE = (
    ReaderError,
    SerdeError,
    struct.error,
    AssertionError,
    LookupError,
    ValueError,
    EOFError,
    RuntimeError,
    MemoryError,
)
_STAMP = struct.Struct("<4xII")


@dataclass(frozen=True, slots=True)
class StampedMessage:
    """A message as the recorder received it.

    Attributes:
        at_ns: when that was, by the recorder's clock.
        data: as it came over the wire; :meth:`decoded` takes it apart.
    """

    topic: str
    kind: str
    at_ns: int
    data: bytes

    @property
    def stamp_ns(self) -> int:
        """The header's stamp; only of a type whose first field is a header."""
        seconds, nanoseconds = _STAMP.unpack_from(self.data)
        return int(seconds * NS_PER_S + nanoseconds)

    def decoded(self) -> Any:
        """The message. Raises ``DamagedBag``."""
        try:
            return typestore().deserialize_ros1(self.data, stored_name(self.kind))
        except _NONSENSE as error:
            raise DamagedBag(
                f"topic {self.topic}: the message of {ns_to_seconds(self.at_ns):.3f} s is not a {self.kind}: {error!r}",
                "record the bag again",
            ) from error


class BagReader:
    """One bag.

    Attributes:
        kinds: type by topic, of topics that hold messages.

    Raises:
        DamagedBag: no bag, one that its recorder never closed, or a torn one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise RecordingError(f"{path}: there is no such file", "give a .bag file")
        with self._understood():
            self._reader = Reader(path)
            self._reader.open()
        self._connections: dict[str, list[Connection]] = {}
        for connection in self._reader.connections:
            if connection.msgcount:
                self._connections.setdefault(connection.topic, []).append(connection)
        self.kinds = {
            topic: denormalize_msgtype(connections[0].msgtype) for topic, connections in self._connections.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._reader.close()

    def count(self, topics: Sequence[str]) -> int:
        """How many messages stand on these topics."""
        return sum(connection.msgcount for topic in topics for connection in self._connections.get(topic, ()))

    def span_ns(self, topic: str) -> tuple[int, int]:
        """When the first and the last message of a topic were received."""
        indexes = [self._reader.indexes[connection.id] for connection in self._connections[topic]]
        return min(index[0].time for index in indexes), max(index[-1].time for index in indexes)

    def require(self, topic: str, kinds: Sequence[str], what: str, remedy: str) -> str:
        """The type of a topic, which must be one of ``kinds`` in the definition that is known here.

        Raises:
            MissingTopic: no message of it; ``what`` says what it is needed for.
            WrongDefinition: another type, or another md5.
        """
        if topic not in self._connections:
            near = ", ".join(sorted(name for name, kind in self.kinds.items() if kind in kinds)) or "none"
            raise MissingTopic(
                f"{self.path}: has no message on topic {topic} ({what}); of its type there are: {near}", remedy
            )
        for connection in self._connections[topic]:
            kind = denormalize_msgtype(connection.msgtype)
            if kind not in kinds:
                raise WrongDefinition(
                    f"{self.path}: topic {topic} is of type {kind}, not {' or '.join(kinds)}",
                    "name another topic in the robot's YAML",
                )
            if connection.digest != md5_of(kind):
                raise WrongDefinition(
                    f"{self.path}: topic {topic}: md5 {connection.digest} of {kind} is not {md5_of(kind)}: another "
                    "definition of that message",
                    "convert the bag with `rosbag fix`, or record it with the robot's current messages",
                )
        return self.kinds[topic]

    def messages(self, topics: Sequence[str]) -> Iterator[StampedMessage]:
        """The messages of these topics in the order in which they were received. Raises ``DamagedBag``."""
        chosen = [connection for topic in topics for connection in self._connections.get(topic, ())]
        if not chosen:
            return
        # A generator of the library's: what it raises comes out of next().
        found = self._reader.messages(chosen)
        while True:
            with self._understood():
                item = next(found, None)
            if item is None:
                return
            connection, at_ns, data = item
            yield StampedMessage(connection.topic, denormalize_msgtype(connection.msgtype), at_ns, data)

    @contextmanager
    def _understood(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RecordingError(
                f"{self.path}: cannot be read: {error.strerror or error}", "check the file and its permissions"
            ) from error
        except _NONSENSE as error:
            raise _damaged(self.path, error) from error


def _damaged(path: Path, error: Exception) -> DamagedBag:
    if "not indexed" in str(error):
        return DamagedBag(
            f"{path}: has no index: its recorder was killed, or still runs", f"run `rosbag reindex {path}`"
        )
    if "magic" in str(error) or "empty" in str(error) or isinstance(error, UnicodeDecodeError):
        return DamagedBag(f"{path}: is not a ROS 1 bag", "give a .bag file of format 2.0")
    return DamagedBag(
        f"{path}: is torn or damaged: {error}", f"run `rosbag reindex {path}` to keep what is whole, or copy it again"
    )


Progress = Callable[[], None]
"""Called after every step of something long."""
