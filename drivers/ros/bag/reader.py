"""A reader of bags whose errors are typed and name file, topic and time."""

import bz2
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import lz4.frame
from rosbags import rosbag1, rosbag2
from rosbags.interfaces import Connection
from rosbags.rosbag1.reader import Chunk, decompressors
from rosbags.rosbag2 import storage_mcap
from rosbags.serde import SerdeError
from rosbags.typesys import TypesysError
from rosbags.typesys.msg import denormalize_msgtype
from typing_extensions import Self

from drivers.ros.bag.definitions import other_definition, stored_name, typestore
from drivers.ros.bag.errors import DamagedBag, MissingTopic
from drivers.ros.connection.errors import WrongDefinition
from drivers.ros.connection.received import UNKNOWN
from robot_runtime.common.clock import NS_PER_S, ns_to_seconds
from robot_runtime.errors import RecordingError

# The library's exceptions for damaged bytes; RuntimeError is lz4's.
_DAMAGE = (
    rosbag1.ReaderError,
    rosbag2.ReaderError,
    SerdeError,
    TypesysError,
    apsw.Error,
    storage_mcap.zstd.ZstdError,  # type: ignore[attr-defined]
    struct.error,
    AssertionError,
    LookupError,
    ValueError,
    EOFError,
    RuntimeError,
    OverflowError,
    MemoryError,
)
MAX_CHUNK_BYTES = 1 << 27
"""Of an unpacked chunk: rosbag closes one at 768 kB, or after a single larger message."""

ROS_2_FILES = (".mcap", ".db3")
"""Endings of a bag of ROS 2 that is one file; else it is a folder."""

_DECOMPRESSORS: dict[Callable[[bytes], bytes], Callable[[], Any]] = {
    decompressors["bz2"]: bz2.BZ2Decompressor,
    decompressors["lz4"]: lz4.frame.LZ4FrameDecompressor,
}

_STAMP = struct.Struct("<4xII")


@dataclass(frozen=True, slots=True)
class BagMessage:
    """A recorded message.

    Attributes:
        topic: Full name.
        kind: Its type, such as ``std_msgs/String``.
        at_ns: Time of reception by the recorder's clock.
        data: Serialized; see :meth:`decoded`.
        node: The publisher's name, ``UNKNOWN`` if the bag does not have it.
        ros: 1 or 2.
    """

    topic: str
    kind: str
    at_ns: int
    data: bytes
    node: str = UNKNOWN
    ros: int = 1

    @property
    def stamp_ns(self) -> int:
        """The header's stamp; only for types whose first field is a header."""
        seconds, nanoseconds = _STAMP.unpack_from(self.data)
        return int(seconds * NS_PER_S + nanoseconds)

    def decoded(self) -> Any:
        """Return the deserialized message. Raises ``DamagedBag``."""
        store = typestore(self.ros)
        try:
            return (store.deserialize_ros1 if self.ros == 1 else store.deserialize_cdr)(
                self.data, stored_name(self.kind)
            )
        except _DAMAGE as error:
            raise DamagedBag(
                f"topic {self.topic}: the message of {ns_to_seconds(self.at_ns):.3f} s is not a {self.kind}: {error!r}",
                "record the bag again",
            ) from error


class BagReader:
    """One bag.

    Attributes:
        path: A file of ROS 1, or a folder or file of ROS 2.
        ros: 1 or 2.
        kinds: Type by topic, of topics with messages.
        silent: Topics without messages.

    Raises:
        RecordingError: The file does not exist or cannot be read.
        DamagedBag: Not a bag, not closed by its recorder, or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ros = 2 if path.is_dir() or path.suffix in ROS_2_FILES else 1
        if not path.exists():
            raise RecordingError(f"{path} does not exist", "give a .bag file, or a bag of ROS 2")
        with self._errors():
            self._reader: Any = (rosbag1 if self.ros == 1 else rosbag2).Reader(path)
            self._reader.open()
            if self.ros == 1:
                self._reader.chunks = {at: _bounded(chunk) for at, chunk in self._reader.chunks.items()}
        self._connections: dict[str, list[Connection]] = {}
        for connection in self._reader.connections:
            if connection.msgcount:
                self._connections.setdefault(connection.topic, []).append(connection)
        self.silent = {connection.topic for connection in self._reader.connections} - set(self._connections)
        self.kinds = {
            topic: denormalize_msgtype(connections[0].msgtype) for topic, connections in self._connections.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def span_ns(self, topic: str) -> tuple[int, int]:
        """Return when the first and the last message of a topic were received."""
        connections = self._connections[topic]
        if self.ros == 1:
            indexes = [self._reader.indexes[connection.id] for connection in connections]
            return min(index[0].time for index in indexes), max(index[-1].time for index in indexes)
        with self._errors():
            first_ns = next(self.messages((topic,))).at_ns
            # No index of topics: the end of the bag is searched, further back each time.
            for window_ns in (NS_PER_S << 3 * step for step in count()):
                start_ns = max(first_ns, self._reader.end_time - window_ns)
                stamps_ns = [at_ns for _, at_ns, _ in self._reader.messages(connections, start=start_ns)]
                if stamps_ns:
                    return first_ns, max(stamps_ns)
        raise AssertionError("a topic with messages has none")

    def require(self, topic: str, kinds: Sequence[str], what: str, remedy: str) -> str:
        """Return the type of a topic; it must be one of ``kinds`` in the definition of ``definitions.py``.

        Args:
            topic: Full name.
            kinds: Accepted types.
            what: Content of the topic, for messages.
            remedy: For a topic that is missing.

        Raises:
            MissingTopic: The topic has no message.
            WrongDefinition: The topic has another type, or another md5.
        """
        if topic not in self._connections:
            near = ", ".join(sorted(name for name, kind in self.kinds.items() if kind in kinds)) or "none"
            raise MissingTopic(
                f"{self.path}: has no message on topic {topic} ({what}); topics of its type: {near}", remedy
            )
        for connection in self._connections[topic]:
            kind = denormalize_msgtype(connection.msgtype)
            if kind not in kinds:
                raise WrongDefinition(
                    f"{self.path}: topic {topic} is of type {kind}, not {' or '.join(kinds)}",
                    "name another topic in the robot's YAML",
                )
            with self._errors():
                other = other_definition(connection, kind, self.ros)
            if other:
                raise WrongDefinition(
                    f"{self.path}: topic {topic}: {other}: another definition of that message",
                    f"{'convert the bag with `rosbag fix`, or ' * (self.ros == 1)}record it with the robot's current "
                    "messages",
                )
        return self.kinds[topic]

    def messages(self, topics: Sequence[str]) -> Iterator[BagMessage]:
        """Yield the messages of these topics in the order of reception. Raises ``DamagedBag``."""
        chosen = [connection for topic in topics for connection in self._connections.get(topic, ())]
        if not chosen:
            return
        found = self._reader.messages(chosen)
        for number in count():
            with self._errors():
                item = next(found, None)
                if item is None and not number:
                    raise ValueError(f"no message on {', '.join(topics)}, which its index counts")
            if item is None:
                return
            connection, at_ns, data = item
            node = getattr(connection.ext, "callerid", None) or UNKNOWN
            yield BagMessage(connection.topic, denormalize_msgtype(connection.msgtype), at_ns, data, node, self.ros)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if isinstance(error, FileNotFoundError) and self.path.is_dir():
                raise _damaged(self.path, error) from error
            raise RecordingError(
                f"{self.path}: cannot be read: {error.strerror or error}", "check the file and its permissions"
            ) from error
        except _DAMAGE as error:
            raise _damaged(self.path, error) from error


def _bounded(chunk: Chunk) -> Chunk:
    """A chunk that unpacks to at most ``MAX_CHUNK_BYTES``."""
    if chunk.decompressor not in _DECOMPRESSORS:
        return chunk

    def unpack(data: bytes) -> bytes:
        decompressor = _DECOMPRESSORS[chunk.decompressor]()
        unpacked: bytes = decompressor.decompress(data, max_length=MAX_CHUNK_BYTES)
        if not decompressor.eof:
            raise ValueError(f"a chunk is cut off, or unpacks to more than {MAX_CHUNK_BYTES} bytes")
        return unpacked

    return chunk._replace(decompressor=unpack)


def _damaged(path: Path, error: Exception) -> DamagedBag:
    if path.is_dir() or path.suffix in ROS_2_FILES:
        reindex = f"run `ros2 bag reindex {path}`"
        if isinstance(error, FileNotFoundError) or "end magic" in str(error) or "footer" in str(error):
            return DamagedBag(f"{path}: is not complete: its recorder was killed, or is still running", reindex)
        if "magic" in str(error) or "rofile" in str(error) or "empty" in str(error) or "not a database" in str(error):
            return DamagedBag(f"{path}: is not a bag of ROS 2", "give the folder that `ros2 bag record` wrote")
        return DamagedBag(f"{path}: is damaged: {error}", f"{reindex} to save the intact part, or copy it again")
    if "not indexed" in str(error):
        return DamagedBag(
            f"{path}: has no index: its recorder was killed, or is still running", f"run `rosbag reindex {path}`"
        )
    if "magic" in str(error) or "empty" in str(error) or isinstance(error, UnicodeDecodeError):
        return DamagedBag(f"{path}: is not a ROS 1 bag", "give a .bag file of format 2.0")
    return DamagedBag(
        f"{path}: is damaged: {error}", f"run `rosbag reindex {path}` to save the intact part, or copy it again"
    )


Progress = Callable[[], None]
"""Called after every step."""
