"""The camera: colour and depth of one exposure, exactly paired, in metres, with an age.

Subscriptions keep messages as they came; arrays are made only of what is asked for. rospy's queue is short but not 1: a
frame of each stream may wait while the interpreter is busy, and a lost half loses the pair.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from sensor_msgs.msg import CameraInfo as CameraInfoMessage
from sensor_msgs.msg import Image

from drivers.ros_locobot.camera.messages import color_image, depth_image, intrinsics
from drivers.ros_locobot.camera.pairing import ExactPairs, Pair
from drivers.ros_locobot.connection.master import wait_until
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.connection.topic_cache import TopicCache
from drivers.ros_locobot.device import RosDevice
from drivers.ros_locobot.localizer.motion_history import MotionHistory
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.robot_variants import topics_of
from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, FrozenCamera, StaleData
from robot_runtime.hal import Camera, CameraInfo, Intrinsics, Mount, RgbdFrame
from robot_runtime.robots.camera_mount import load_mount

QUEUE = 4
WAITING = 10
KEPT_S = 1.0
"""How long a pair can still be asked for; at 30 Hz and 640x480 that is 46 MB."""

POLL_S = 0.005
NOMINAL = Intrinsics.from_hfov(640, 480, 69.4)
"""A RealSense D435's colour sensor, until the camera says what it is and where no training camera is known."""

log = logging.getLogger(__name__)


class RosCamera(RosDevice, Camera):
    """An RGB-D camera behind image topics; depth must be registered to colour.

    Args:
        nominal: intrinsics to announce until the camera's own are known.
        motion: what tells a frozen camera from a robot that stands still.
        robot: its name, which a calibrated mount must be of; None to take anybody's.

    Raises:
        ConfigError: there is no such mount. CalibrationError: it is another robot's, altered or too old.
    """

    def __init__(
        self,
        session: Session,
        options: RosOptions,
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
        self._color_info = self._cache(self._topics.color_info)
        self._pairs = ExactPairs(WAITING, kept=max(2, math.ceil(KEPT_S * chosen.rate_hz)))

    @property
    def info(self) -> CameraInfo:
        """Nominal before the first connection, then what the camera's own CameraInfo and encoding say."""
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
            raise self._why_none(timeout_s)
        if pair.content < pair.stamp_ns and self._motion.moved(pair.content, pair.stamp_ns):
            frozen_s = ns_to_seconds(pair.stamp_ns - pair.content)
            raise FrozenCamera(
                f"topics {self._color.topic} and {self._depth.topic}: the same picture for {frozen_s:.1f} s under new "
                "stamps, while the robot moved",
                "restart the camera's driver and look at its USB cable",
            )
        return self._frame(pair)

    def forget(self) -> None:
        """Drop the pictures of the place where the robot was."""
        self._pairs.clear()

    def _frame(self, pair: Pair) -> RgbdFrame:
        size = (self._info.intrinsics.width, self._info.intrinsics.height)
        for message, channel in ((pair.color, self._color), (pair.depth, self._depth)):
            if (message.width, message.height) != size:
                raise DeviceFault(
                    f"topic {channel.topic}: {message.width}x{message.height} pixels, "
                    f"{self._color_info.topic} says {size[0]}x{size[1]}",
                    "give colour and depth the same size: registered depth has colour's",
                )
        rgb = color_image(pair.color, self._color.topic)
        depth_m, _ = depth_image(pair.depth, self._depth.topic, self._info.depth_min_m, self._info.depth_max_m)
        return RgbdFrame(pair.stamp_ns, rgb, depth_m)

    def _why_none(self, timeout_s: float) -> StaleData:
        """What to tell of a capture that timed out; raises instead where a topic is silent."""
        self._color.read(timeout_s)
        self._depth.read(timeout_s)
        newest = self._pairs.newest()
        if newest is None or ns_to_seconds(self._clock.now_ns() - newest.stamp_ns) > timeout_s:
            return StaleData(
                f"topics {self._color.topic} and {self._depth.topic}: no two images have the same stamp",
                "have the camera driver synchronise them (enable_sync:=true on a RealSense)",
            )
        return StaleData(
            f"topics {self._color.topic} and {self._depth.topic}: no pair exposed after the instant asked for came "
            f"within {timeout_s:g} s",
            "allow more time, or check the network's bandwidth (`rostopic bw`)",
        )

    # --- connection -------------------------------------------------------------------------------------------------

    def _opened(self) -> None:
        session = self._session
        wanted: tuple[tuple[TopicCache, Callable[[Any], object], Any, int], ...] = (
            (self._color_info, self._color_info.receive, CameraInfoMessage, 1),
            (self._color, self._on_color, Image, QUEUE),
            (self._depth, self._on_depth, Image, QUEUE),
        )
        for channel, on_message, message, queue in wanted:
            self._endpoints.append(
                session.subscribe(channel.topic, message, on_message, queue, images=message is Image)
            )
        limit_s = session.options.connect_timeout_s
        if not wait_until(self._introduced, session.wait, limit_s, POLL_S):
            for channel in (self._color_info, self._color, self._depth):
                channel.read(limit_s)
        self._learn()

    def _introduced(self) -> bool:
        return None not in (self._color_info.newest, self._color.newest, self._depth.newest)

    def _learn(self) -> None:
        """Take over what the camera says of itself. Raises ``DeviceFault`` if that cannot be used."""
        info, color, depth = (c.newest for c in (self._color_info, self._color, self._depth))
        if info is None or color is None or depth is None:
            raise StaleData(f"topic {self._color.topic} stopped delivering while connecting", "connect again")
        if color.message.header.frame_id != depth.message.header.frame_id:
            raise DeviceFault(
                f"topic {self._depth.topic}: depth is in frame {depth.message.header.frame_id!r}, colour in "
                f"{color.message.header.frame_id!r}: it is not registered to colour",
                "launch the camera with align_depth:=true and name the aligned topic in the robot's YAML",
            )
        options = self._options
        found = intrinsics(info.message, self._color_info.topic, options.rectified, options.max_distortion_px)
        _, unit_m = depth_image(depth.message, self._depth.topic, options.depth_min_m, options.depth_max_m)
        self._info = CameraInfo(
            found, self._info.mount, options.rate_hz, options.depth_min_m, options.depth_max_m, unit_m, False
        )

    def _closed(self) -> None:
        if self._pairs.dropped:
            log.info("camera: %d images had no other half", self._pairs.dropped)
        self._pairs.clear()

    def _on_color(self, message: Any) -> None:
        received = self._color.receive(message)
        if received is not None:
            self._pairs.add_color(received.stamp_ns, message)

    def _on_depth(self, message: Any) -> None:
        received = self._depth.receive(message)
        if received is not None:
            self._pairs.add_depth(received.stamp_ns, message)
