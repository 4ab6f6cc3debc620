"""ROS 2 messages that viewers understand better than Foxglove's: depth images and occupancy maps, in CDR.

Rerun's MCAP loader takes single-channel ``sensor_msgs/msg/Image`` for depth, with 16-bit integers in millimeters and
floats in meters, and ``nav_msgs/msg/OccupancyGrid`` for a map; Foxglove's ``RawImage`` is a gray image to it, and
``Grid`` is nothing. Foxglove and Lichtblick show both. CDR: OMG DDS-XTypes 1.3, 7.4.3, little-endian, each number
aligned to its own size.
"""

import struct
from dataclasses import dataclass

import numpy as np

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

IMAGE = "sensor_msgs/msg/Image"
OCCUPANCY_GRID = "nav_msgs/msg/OccupancyGrid"

_LITTLE_ENDIAN = b"\x00\x01\x00\x00"
_OCCUPANCY = {Cell.FREE: 0, Cell.OCCUPIED: 100, Cell.UNKNOWN: -1}

_TIME = {"builtin_interfaces/Time": "int32 sec\nuint32 nanosec"}
_HEADER = {"std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id", **_TIME}
_POSE = {
    "geometry_msgs/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
}
_META_DATA = {
    "nav_msgs/MapMetaData": "builtin_interfaces/Time map_load_time\nfloat32 resolution\nuint32 width\nuint32 height\n"
    "geometry_msgs/Pose origin"
}


def _definition(root: str, parts: dict[str, str]) -> bytes:
    return ("\n" + "=" * 80 + "\n").join([root, *(f"MSG: {name}\n{text}" for name, text in parts.items())]).encode()


DEFINITIONS: dict[str, bytes] = {
    IMAGE: _definition(
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\n"
        "uint8[] data",
        _HEADER,
    ),
    OCCUPANCY_GRID: _definition(
        "std_msgs/Header header\nnav_msgs/MapMetaData info\nint8[] data", {**_HEADER, **_META_DATA, **_POSE}
    ),
}
"""Schemas by name, with those that they contain."""


@dataclass(frozen=True, slots=True)
class Image:
    """A ``sensor_msgs/msg/Image``.

    Attributes:
        stamp_ns: time of the exposure.
        frame_id: frame of the camera.
        height: number of rows.
        width: number of columns.
        encoding: encoding of a pixel, such as ``16UC1``.
        step: number of bytes per row.
        data: pixels by row.
    """

    stamp_ns: int
    frame_id: str
    height: int
    width: int
    encoding: str
    step: int
    data: bytes | memoryview

    def parts(self) -> tuple[bytes, bytes | memoryview]:
        """The serialized message: what precedes the pixels, and the pixels."""
        message = _Encoder()
        message.header(self.stamp_ns, self.frame_id)
        message.put("II", self.height, self.width)
        message.text(self.encoding)
        message.put("BII", 0, self.step, len(self.data))
        return message.to_bytes(), self.data

    def to_bytes(self) -> bytes:
        """The serialized message."""
        return b"".join(self.parts())

    @classmethod
    def from_bytes(cls, data: bytes) -> "Image":
        """The inverse of :meth:`to_bytes`. Raises ``ValueError``."""
        message = _Decoder(data)
        seconds, nanoseconds = message.take("iI")
        frame_id = message.sequence().decode().rstrip("\0")
        height, width = message.take("II")
        encoding = message.sequence().decode().rstrip("\0")
        _, step = message.take("BI")
        return cls(seconds * NS_PER_S + nanoseconds, frame_id, height, width, encoding, step, message.sequence())


def is_cdr(data: bytes) -> bool:
    """Whether a message is CDR; protobuf never starts so, because it has no field 0."""
    return data.startswith(_LITTLE_ENDIAN)


def occupancy_grid(occupancy: OccupancyMap, stamp_ns: int, frame_id: str) -> bytes:
    """A map as a serialized ``nav_msgs/msg/OccupancyGrid``: 0 free, 100 occupied, -1 unknown."""
    lookup = np.array([_OCCUPANCY[Cell(i)] for i in range(len(Cell))], np.int8)
    height, width = occupancy.cells.shape
    message = _Encoder()
    message.header(stamp_ns, frame_id)
    message.put("iIfII", *divmod(stamp_ns, NS_PER_S), occupancy.resolution_m, width, height)
    message.put("ddddddd", occupancy.origin_x_m, occupancy.origin_y_m, 0.0, 0.0, 0.0, 0.0, 1.0)
    message.sequence(lookup[occupancy.cells].tobytes())
    return message.to_bytes()


class _Encoder:
    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def header(self, stamp_ns: int, frame_id: str) -> None:
        self.put("iI", *divmod(stamp_ns, NS_PER_S))
        self.text(frame_id)

    def put(self, codes: str, *values: float) -> None:
        for code, value in zip(codes, values, strict=True):
            self._append(b"\0" * (-self._size % struct.calcsize(code)))
            self._append(struct.pack("<" + code, value))

    def text(self, text: str) -> None:
        self.sequence(text.encode() + b"\0")

    def sequence(self, data: bytes) -> None:
        self.put("I", len(data))
        self._append(data)

    def to_bytes(self) -> bytes:
        return b"".join([_LITTLE_ENDIAN, *self._parts])

    def _append(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)


class _Decoder:
    def __init__(self, data: bytes) -> None:
        if not is_cdr(data):
            raise ValueError("the message is not little-endian CDR")
        self._data, self._at = memoryview(data)[len(_LITTLE_ENDIAN) :], 0

    def take(self, codes: str) -> list[int]:
        values = []
        for code in codes:
            size = struct.calcsize(code)
            self._at += -self._at % size
            values.append(struct.unpack("<" + code, self._bytes(size))[0])
        return values

    def sequence(self) -> bytes:
        (length,) = self.take("I")
        return bytes(self._bytes(length))

    def _bytes(self, size: int) -> memoryview:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise ValueError("the message ends too early")
        self._at += size
        return found
