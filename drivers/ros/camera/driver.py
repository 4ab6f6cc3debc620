"""The camera driver: color and depth of the same exposure, in meters, with an age.

Messages are stored as received, and converted to arrays only on request. Queues are short but longer than 1: on
a busy computer a message may wait, and losing one loses its pair.
"""

import logging
import math
from collections.abc import Callable, Sequence

from drivers.ros.camera.messages import DepthImages, color_image, image_kind, intrinsics
from drivers.ros.camera.pairing import FramePairs, Pair
from drivers.ros.connection.received import Received
from drivers.ros.connection.session import Session
from drivers.ros.connection.topic_cache import TopicCache
from drivers.ros.connection.waiting import wait_until
from drivers.ros.device import RosDevice
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.options import RobotOptions
from drivers.ros.robot_variants import topics_of
from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, FrozenCamera, StaleData
from robot_runtime.hal import Camera, CameraInfo, Intrinsics, Mount, RgbdFrame
from robot_runtime.hal.events import Event
from robot_runtime.robots.camera_mount import load_mount

QUEUE = 4
WAITING = 10
STORED_S = 1.0
"""Time for which pairs are stored; at 30 Hz and 640x480 that is 46 MB."""

SKEW_PAIRS = 15
"""Pairs from which the usual difference of their stamps is told."""

POLL_S = 0.005
NOMINAL = Intrinsics.from_hfov(640, 480, 69.4)
"""A RealSense D435's color sensor; used before the first connection where no training camera is known."""

log = logging.getLogger(__name__)


class RosCamera(RosDevice, Camera):
    """An RGB-D camera behind image topics; depth must be registered to color.

    Args:
        session: The connection to the ROS network.
        options: Topics and camera.
        nominal: Intrinsics to report before the first connection.
        motion: Distinguishes a frozen camera from a robot that stands still.
        robot: Name of the robot to which a calibrated mount must belong; None accepts any.

    Raises:
        ConfigError: There is no such mount.
        CalibrationError: The mount is another robot's, altered or too old.
    """

    def __init__(
        self,
        session: Session,
        options: RobotOptions,
        nominal: Intrinsics,
        motion: MotionHistory,
        robot: str | None = None,
    ) -> None:
        super().__init__("camera", session)
        self._topics = topics_of(options)
        self._options = chosen = options.camera
        mount = load_mount(config.find_preset("mounts", chosen.mount), robot)
        x_m, y_m, z_m = mount.sensor(SE2(), 0.0, 0.0)[:3, 3]
        self._motion = motion
        self._info = CameraInfo(
            intrinsics=nominal,
            mount=Mount(float(x_m), float(y_m), float(z_m)),
            rate_hz=chosen.rate_hz,
            depth_min_m=chosen.depth_min_m,
            depth_max_m=chosen.depth_max_m,
            depth_unit_m=0.001,
            has_semantic=False,
        )
        self._color = self._cache(self._topics.color)
        self._depth = self._cache(self._topics.depth)
        self._depth_images = DepthImages(self._topics.depth, chosen.depth_min_m, chosen.depth_max_m)
        self._color_info = self._cache(self._topics.color_info)
        self._is_skew_told = False
        self._pairs = FramePairs(WAITING, chosen.rate_hz, stored=max(2, math.ceil(STORED_S * chosen.rate_hz)))

    @property
    def info(self) -> CameraInfo:
        """Nominal before the first connection, then from the camera's CameraInfo and encoding."""
        return self._info

    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        self._require_working()
        if semantic:
            raise DeviceFault("ROS camera: has no segmentation", "ask for it on a simulated robot only")

        def probe() -> Pair | None:
            self._session.check()
            return self._pairs.first_after(exposed_after_ns)

        pair = wait_for(self._clock, probe, timeout_s, POLL_S)
        if pair is None:
            raise self._no_pair(timeout_s)
        if pair.unchanged_since_ns < pair.stamp_ns and self._motion.moved(pair.unchanged_since_ns, pair.stamp_ns):
            frozen_s = ns_to_seconds(pair.stamp_ns - pair.unchanged_since_ns)
            raise FrozenCamera(
                f"topics {self._color.topic} and {self._depth.topic}: the same image for {frozen_s:.1f} s with new "
                "stamps, while the robot moved",
                "restart the camera's driver and look at its USB cable",
            )
        return self._frame(pair)

    def events(self) -> Sequence[Event]:
        skew = "" if self._is_skew_told else self._pairs.skew(SKEW_PAIRS)
        if not skew:
            return ()
        self._is_skew_told = True
        return (Event(self._clock.now_ns(), "camera", "images", f"topic {self._depth.topic}: {skew}"),)

    def forget(self) -> None:
        """Discard the images of the robot's former place."""
        self._pairs.clear()

    def _frame(self, pair: Pair) -> RgbdFrame:
        size = self._info.intrinsics
        rgb = color_image(pair.color, self._color.topic)
        depth_m, _ = self._depth_images.convert(pair.depth)
        for (height, width), cache in ((rgb.shape[:2], self._color), (depth_m.shape, self._depth)):
            if (width, height) != (size.width, size.height):
                raise DeviceFault(
                    f"topic {cache.topic}: {width}x{height} pixels, "
                    f"{self._color_info.topic} says {size.width}x{size.height}",
                    "configure the same size for color and depth, as registered depth has",
                )
        return RgbdFrame(pair.stamp_ns, rgb, depth_m)

    def _no_pair(self, timeout_s: float) -> StaleData:
        """Return the fault of a capture that timed out; raise instead where a topic is silent."""
        self._color.read(timeout_s)
        self._depth.read(timeout_s)
        newest = self._pairs.newest()
        if newest is None or ns_to_seconds(self._clock.now_ns() - newest.stamp_ns) > timeout_s:
            message, remedy = self._pairs.matcher.no_pair(self._color.topic, self._depth.topic)
            return StaleData(f"topics {self._color.topic} and {self._depth.topic}: {message}", remedy)
        return StaleData(
            f"topics {self._color.topic} and {self._depth.topic}: no pair exposed after the requested instant arrived "
            f"within {timeout_s:g} s",
            "allow more time, or check the bandwidth (`rostopic bw`, `ros2 topic bw`); on ROS 2, start the camera's "
            "driver with launch/dds/fastdds_images.xml",
        )

    # --- connection -------------------------------------------------------------------------------------------------

    def _opened(self) -> None:
        session = self._session
        subscriptions: tuple[tuple[TopicCache, Callable[[Received], object], int], ...] = (
            (self._color_info, self._color_info.receive, 1),
            (self._color, self._on_color, QUEUE),
            (self._depth, self._on_depth, QUEUE),
        )
        for cache, on_message, queue in subscriptions:
            images = cache is not self._color_info
            kind = image_kind(cache.topic) if images else "sensor_msgs/CameraInfo"
            self._endpoints.append(session.subscribe(cache.topic, kind, on_message, queue, images))
        limit_s = session.connect_timeout_s
        if not wait_until(self._has_messages, session.wait, limit_s, POLL_S):
            for cache in (self._color_info, self._color, self._depth):
                cache.read(limit_s)
        self._update_info()

    def _has_messages(self) -> bool:
        return None not in (self._color_info.newest, self._color.newest, self._depth.newest)

    def _update_info(self) -> None:
        """Read the camera's intrinsics and depth unit. Raises ``DeviceFault`` if they are unusable."""
        info, color, depth = (c.newest for c in (self._color_info, self._color, self._depth))
        if info is None or color is None or depth is None:
            raise StaleData(f"topic {self._color.topic} stopped delivering while connecting", "connect again")
        if color.message.header.frame_id != depth.message.header.frame_id:
            raise DeviceFault(
                f"topic {self._depth.topic}: depth is in frame {depth.message.header.frame_id!r}, color in "
                f"{color.message.header.frame_id!r}: it is not registered to color",
                "launch the camera with align_depth:=true and name the aligned topic in the robot's YAML",
            )
        options = self._options
        found = intrinsics(info.message, self._color_info.topic, options.rectified, options.max_distortion_px)
        _, unit_m = self._depth_images.convert(depth.message)
        self._info = CameraInfo(
            found, self._info.mount, options.rate_hz, options.depth_min_m, options.depth_max_m, unit_m, False
        )

    def _closed(self) -> None:
        matcher = self._pairs.matcher
        if matcher.dropped:
            log.info("camera: %d images had no counterpart", matcher.dropped)
        self._pairs.clear()
        self._is_skew_told = False

    def _on_color(self, received: Received) -> None:
        if (taken := self._color.receive(received)) is not None:
            self._pairs.add_color(taken.stamp_ns, taken.message)

    def _on_depth(self, received: Received) -> None:
        if (taken := self._depth.receive(received)) is not None:
            self._pairs.add_depth(taken.stamp_ns, taken.message)
