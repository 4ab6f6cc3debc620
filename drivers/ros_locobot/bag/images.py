"""The pictures of a bag that somebody else recorded: the second pass, in which only those asked for are decoded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from drivers.ros_locobot.bag.errors import DamagedBag, NoOverlap
from drivers.ros_locobot.bag.reader import BagReader, StampedMessage
from drivers.ros_locobot.bag.topic_layout import COMPRESSED, COMPRESSED_DEPTH
from drivers.ros_locobot.bag.trajectory import YAML_REMEDY
from drivers.ros_locobot.camera.messages import color_image, depth_image, intrinsics
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.robot_variants import topics_of
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics, RgbdFrame

RAW = "sensor_msgs/Image"
PACKED = "sensor_msgs/CompressedImage"
WAITING = 60
"""BagImages kept until their other half comes: two seconds at 30 Hz."""

_DEPTH_HEADER_BYTES = 12


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """When a picture is wanted: the first one exposed in this time, both ends included."""

    first_ns: int
    last_ns: int


class BagImages:
    """Colour and depth of a bag.

    Args:
        without: ``depth`` if the bag has none: then nothing was measured anywhere.

    Attributes:
        intrinsics: of the colour camera.

    Raises:
        MissingTopic, WrongDefinition, DamagedBag: naming the topic.
        DeviceFault: the camera is not calibrated, or its lens distorts.
    """

    def __init__(self, bag: BagReader, options: RosOptions, without: Collection[str]) -> None:
        self._bag, self._camera = bag, options.camera
        topics = topics_of(options)
        no_depth = f"{YAML_REMEDY}, or add --without depth: then nothing was measured anywhere"
        self.color = _present(bag, topics.color, COMPRESSED, "colour", YAML_REMEDY)
        self.depth = None
        if "depth" not in without:
            self.depth = _present(bag, topics.depth, COMPRESSED_DEPTH, "depth registered to colour", no_depth)
        bag.require(topics.color_info, ("sensor_msgs/CameraInfo",), "the camera's calibration", YAML_REMEDY)
        info = next(bag.messages((topics.color_info,))).decoded()
        self.intrinsics: Intrinsics = intrinsics(
            info, topics.color_info, self._camera.rectified, self._camera.max_distortion_px
        )
        self.depth_unit_m = 0.0
        """Of the first frame given out."""

    def span_ns(self) -> tuple[int, int]:
        """When pictures were received, by the recorder's clock."""
        spans = [self._bag.span_ns(topic) for topic in self._topics]
        return max(first for first, _ in spans), min(last for _, last in spans)

    def delays_ns(self) -> dict[str, int]:
        """From stamp to recorder, of the first picture of each topic."""
        firsts = [next(self._bag.messages((topic,))) for topic in self._topics]
        return {message.topic: message.at_ns - message.stamp_ns for message in firsts}

    def frames(self, looks: Sequence[TimeWindow]) -> Iterator[RgbdFrame]:
        """The frame of each look, in order.

        Raises:
            NoOverlap: in the time of a look there is none.
            DamagedBag, DeviceFault: naming the topic, for a picture that cannot be understood.
        """
        wanted = 0
        for color, depth in self._pairs():
            stamp_ns = color.stamp_ns
            if wanted == len(looks):
                return
            if stamp_ns > looks[wanted].last_ns:
                raise self._none(looks[wanted])
            if stamp_ns >= looks[wanted].first_ns:
                yield self._frame(color, depth)
                wanted += 1
        if wanted < len(looks):
            raise self._none(looks[wanted])

    def _pairs(self) -> Iterator[tuple[StampedMessage, StampedMessage | None]]:
        """BagImages of one exposure by equal stamps."""
        waiting: dict[str, OrderedDict[int, StampedMessage]] = {topic: OrderedDict() for topic in self._topics}
        for message in self._bag.messages(self._topics):
            if self.depth is None:
                yield message, None
                continue
            other = self.depth if message.topic == self.color else self.color
            match = waiting[other].pop(message.stamp_ns, None)
            if match is not None:
                yield (message, match) if message.topic == self.color else (match, message)
                continue
            own = waiting[message.topic]
            own[message.stamp_ns] = message
            if len(own) > WAITING:
                own.popitem(last=False)

    @property
    def _topics(self) -> tuple[str, ...]:
        return (self.color,) if self.depth is None else (self.color, self.depth)

    def _none(self, look: TimeWindow) -> NoOverlap:
        first_s, last_s = ns_to_seconds(look.first_ns), ns_to_seconds(look.last_ns)
        return NoOverlap(
            f"topics {' and '.join(self._topics)}: no picture of one stamp on all of them from {first_s:.3f} s to "
            f"{last_s:.3f} s, while the robot stood there",
            "record at a higher rate, with colour and depth synchronised (enable_sync:=true on a RealSense)",
        )

    def _frame(self, color: StampedMessage, depth: StampedMessage | None) -> RgbdFrame:
        rgb = self._rgb(color)
        i = self.intrinsics
        depth_m: NDArray[np.float32] = np.zeros(rgb.shape[:2], np.float32)
        if depth is not None:
            camera = self._camera
            message = depth.decoded() if depth.kind == RAW else unpacked_depth(depth)
            depth_m, unit_m = depth_image(message, depth.topic, camera.depth_min_m, camera.depth_max_m)
            self.depth_unit_m = self.depth_unit_m or unit_m
        for topic, shape in ((color.topic, rgb.shape[:2]), (depth.topic if depth else color.topic, depth_m.shape)):
            if shape != (i.height, i.width):
                raise DeviceFault(
                    f"topic {topic}: {shape[1]}x{shape[0]} pixels, its CameraInfo says {i.width}x{i.height}",
                    "record colour, depth registered to it, and the CameraInfo of that mode",
                )
        return RgbdFrame(color.stamp_ns, rgb, depth_m)

    def _rgb(self, message: StampedMessage) -> NDArray[np.uint8]:
        if message.kind == RAW:
            return color_image(message.decoded(), message.topic)
        packed = message.decoded()
        bgr = cv2.imdecode(np.frombuffer(packed.data, np.uint8), cv2.IMREAD_COLOR) if len(packed.data) else None
        if bgr is None:
            raise DamagedBag(
                f"topic {message.topic}: the picture of {ns_to_seconds(message.stamp_ns):.3f} s ({packed.format!r}) "
                "cannot be decoded",
                "record the topic without compression, or as JPEG or PNG",
            )
        return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)


@dataclass(frozen=True, slots=True)
class _Unpacked:
    """Fields of a sensor_msgs/Image."""

    height: int
    width: int
    encoding: str
    step: int
    data: bytes
    is_bigendian: int = 0


def unpacked_depth(message: StampedMessage) -> Any:
    """A depth image of ``compressedDepth`` as one without compression: a header of 12 bytes, then a PNG.

    Raises:
        DamagedBag: it is no PNG, or of metres, which that transport stores rounded by two numbers of its header.
    """
    packed = message.decoded()
    png = np.frombuffer(packed.data, np.uint8)[_DEPTH_HEADER_BYTES:]
    pixels = cv2.imdecode(png, cv2.IMREAD_UNCHANGED) if png.size else None
    if not packed.format.startswith("16UC1") or pixels is None or pixels.dtype != np.uint16 or pixels.ndim != 2:
        raise DamagedBag(
            f"topic {message.topic}: the depth image of {ns_to_seconds(message.stamp_ns):.3f} s ({packed.format!r}) is "
            "not a PNG of 16-bit millimetres",
            "record the depth topic without compression, or have the camera publish 16UC1",
        )
    height, width = pixels.shape
    return _Unpacked(height, width, "16UC1", 2 * width, pixels.astype("<u2").tobytes())


def _present(bag: BagReader, topic: str, suffix: str, what: str, remedy: str) -> str:
    """The topic, or the one of that transport beside it, whichever the bag has."""
    if topic not in bag.kinds and topic + suffix in bag.kinds:
        bag.require(topic + suffix, (PACKED,), what, remedy)
        return topic + suffix
    bag.require(topic, (RAW, PACKED), what, remedy)
    return topic
