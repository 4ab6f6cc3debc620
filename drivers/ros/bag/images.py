"""The images of a foreign drive's bag: the second of two passes, in which only the requested images are decoded."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.ros.bag.errors import NoOverlap
from drivers.ros.bag.reader import BagMessage, BagReader
from drivers.ros.bag.trajectory import YAML_REMEDY
from drivers.ros.camera.messages import COMPRESSED, COMPRESSED_DEPTH, PACKED, RAW, DepthImages, color_image, intrinsics
from drivers.ros.camera.pairing import StampMatcher
from drivers.ros.connection.quantities import Sources
from drivers.ros.options import RobotOptions
from drivers.ros.robot_variants import topics_of
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics, RgbdFrame

WAITING = 60
"""Images that wait for their counterpart: two seconds at 30 Hz."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time interval, both ends included; its image is the first one exposed in it."""

    first_ns: int
    last_ns: int


class BagImages:
    """Color and depth of a bag.

    Args:
        bag: The bag.
        options: Topics and camera.
        without: ``depth`` if the bag has none; then all depths are unknown.

    Attributes:
        color: Topic.
        depth: Topic; None without depth.
        intrinsics: Of the color camera.
        depth_unit_m: Of the first frame.

    Raises:
        MissingTopic: Names the topic.
        WrongDefinition: Names the topic.
        DamagedBag: Names the topic.
        DeviceFault: The camera is not calibrated, or its lens distorts.
    """

    def __init__(self, bag: BagReader, options: RobotOptions, without: Collection[str]) -> None:
        self._bag, self._camera = bag, options.camera
        topics = topics_of(options)
        no_depth = f"{YAML_REMEDY}, or add --without depth to log unknown depths"
        self.color = _present(bag, topics.color, (COMPRESSED,), "color", YAML_REMEDY)
        self.depth = None
        if "depth" not in without:
            suffixes = (COMPRESSED_DEPTH, COMPRESSED)
            self.depth = _present(bag, topics.depth, suffixes, "depth registered to color", no_depth)
        bag.require(topics.color_info, ("sensor_msgs/CameraInfo",), "the camera's calibration", YAML_REMEDY)
        info = next(bag.messages((topics.color_info,))).decoded()
        self.intrinsics: Intrinsics = intrinsics(
            info, topics.color_info, self._camera.rectified, self._camera.max_distortion_px
        )
        self.depth_unit_m = 0.0
        camera = options.camera
        self._matcher = StampMatcher(WAITING, camera.rate_hz)
        self._depths = None if self.depth is None else DepthImages(self.depth, camera.depth_min_m, camera.depth_max_m)

    def finish(self) -> list[str]:
        """Return what was noticed in the images, for people. Raises ``DepthUnit`` if no image had a usable depth."""
        notes = [] if self._depths is None else [self._depths.finish(), self._matcher.skew]
        return [f"topic {self.depth}: {note}" for note in notes if note]

    def span_ns(self) -> tuple[int, int]:
        """Return when images were received, by the recorder's clock."""
        spans = [self._bag.span_ns(topic) for topic in self._topics]
        return max(first for first, _ in spans), min(last for _, last in spans)

    def delays_ns(self) -> dict[str, int]:
        """Return the delay from stamp to recorder of the first image of each topic."""
        firsts = [next(self._bag.messages((topic,))) for topic in self._topics]
        return {message.topic: message.at_ns - message.stamp_ns for message in firsts}

    def frames(self, windows: Sequence[TimeWindow]) -> Iterator[RgbdFrame]:
        """Yield the frame of each window, in order.

        Raises:
            NoOverlap: A window has no image.
            DamagedBag: A message is damaged; names the topic.
            DeviceFault: An image cannot be used; names the topic.
        """
        count = 0
        for color, depth in self._pairs():
            stamp_ns = color.stamp_ns
            if count == len(windows):
                return
            if stamp_ns > windows[count].last_ns:
                raise self._no_image(windows[count])
            if min(stamp_ns, stamp_ns if depth is None else depth.stamp_ns) >= windows[count].first_ns:
                yield self._frame(color, depth)
                count += 1
        if count < len(windows):
            raise self._no_image(windows[count])

    def _pairs(self) -> Iterator[tuple[BagMessage, BagMessage | None]]:
        """Yield images of the same exposure."""
        sources = Sources()
        for message in self._bag.messages(self._topics):
            sources.check(f"topic {message.topic}", message.node)
            if self.depth is None:
                yield message, None
            elif match := self._matcher.add(int(message.topic != self.color), message.stamp_ns, message):
                yield match[0], match[1]

    @property
    def _topics(self) -> tuple[str, ...]:
        return (self.color,) if self.depth is None else (self.color, self.depth)

    def _no_image(self, window: TimeWindow) -> NoOverlap:
        first_s, last_s = ns_to_seconds(window.first_ns), ns_to_seconds(window.last_ns)
        why, remedy = "no image", "record at a higher rate"
        if self.depth is not None:
            why, remedy = self._matcher.no_pair(self.color, self.depth)
        where = f"from {first_s:.3f} s to {last_s:.3f} s, while the robot stood there"
        return NoOverlap(f"topics {' and '.join(self._topics)}: no image of all of them {where}: {why}", remedy)

    def _frame(self, color: BagMessage, depth: BagMessage | None) -> RgbdFrame:
        rgb = color_image(color.decoded(), color.topic)
        i = self.intrinsics
        depth_m: NDArray[np.float32] = np.zeros(rgb.shape[:2], np.float32)
        if depth is not None and self._depths is not None:
            depth_m, unit_m = self._depths.convert(depth.decoded())
            self.depth_unit_m = self.depth_unit_m or unit_m
        for topic, shape in ((color.topic, rgb.shape[:2]), (depth.topic if depth else color.topic, depth_m.shape)):
            if shape != (i.height, i.width):
                raise DeviceFault(
                    f"topic {topic}: {shape[1]}x{shape[0]} pixels, its CameraInfo says {i.width}x{i.height}",
                    "record color, depth registered to it, and the CameraInfo of that mode",
                )
        return RgbdFrame(color.stamp_ns, rgb, depth_m)


def _present(bag: BagReader, topic: str, suffixes: Sequence[str], what: str, remedy: str) -> str:
    """Return the topic, or its first compressed variant that the bag has."""
    packed = next((topic + suffix for suffix in suffixes if topic + suffix in bag.kinds), None)
    if topic not in bag.kinds and packed is not None:
        bag.require(packed, (PACKED,), what, remedy)
        return packed
    bag.require(topic, (RAW, PACKED), what, remedy)
    return topic
