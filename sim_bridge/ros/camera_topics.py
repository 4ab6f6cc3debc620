"""The camera in ROS, drawn in a thread of its own so that the base never waits for a picture.

With ``/clock`` a picture is published at its exposure plus the camera's latency to the step, and simulated time waits
for it: it slows, and no picture is lost. In real time a picture comes when it is drawn, and what cannot be drawn in
time is left out, as on a camera whose computer is too slow. Without subscribers nothing is drawn.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import rospy
from geometry_msgs.msg import Quaternion
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image
from tf2_msgs.msg import TFMessage

from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, opengl_rotation, quaternion_rpy
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.simulation import CameraMotion
from robot_runtime.robots.camera_mount import CameraMount
from sim_bridge.physics.world import World
from sim_bridge.rendering.renderer import SceneRenderer
from sim_bridge.robot.camera import CameraOptions, Noise, as_measured, camera_motion
from sim_bridge.robot.head import SimHead
from sim_bridge.ros import messages
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.publisher import Publisher
from sim_bridge.ros.robot_variants import Names
from sim_bridge.ros.timing import PeriodicTimer, StampClock

MAX_WAITING = 2
"""Exposures in real time that wait to be drawn; the next is left out."""

DRAWING_LIMIT_S = 30.0
"""Of waiting for one picture with ``/clock``; a software renderer takes 20 ms, its first one half a second."""

LIVE_QUEUE, LOCKSTEP_QUEUE = 4, 30
"""Images that wait per subscriber: in real time a late one is worth nothing; with ``/clock`` none may be lost."""

MM_PER_M = 1000


@dataclass
class _Exposure:
    """One instant's view, on its way from the physics thread to subscribers."""

    stamp_ns: int
    due_ns: int
    sensor: NDArray[np.float64]
    motion: CameraMotion
    may_go: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)


class CameraTopics:
    """An RGB-D camera whose depth is aligned with its colour.

    Args:
        mount: where the camera says that it sits. true_mount: where it does.
        lockstep: whether simulated time waits for every picture.

    Attributes:
        left_out: exposures that nobody had time to draw.
    """

    def __init__(
        self,
        clock: Clock,
        stamps: StampClock,
        faults: Faults,
        world: World,
        head: SimHead,
        mount: CameraMount,
        true_mount: CameraMount,
        intrinsics: Intrinsics,
        options: CameraOptions,
        names: Names,
        lockstep: bool,
    ) -> None:
        self.left_out = 0
        self._clock, self._stamps, self._faults = clock, stamps, faults
        self._world, self._head, self._mount, self._true_mount = world, head, mount, true_mount
        self._intrinsics, self._options = intrinsics, options
        self._noise = Noise(options, intrinsics)
        self._frame = names.optical_frame
        self._lockstep = lockstep
        self._latency_ns = seconds_to_ns(options.latency_s)
        self._half_period_ns = seconds_to_ns(0.5 / options.rate_hz)
        self._ticks = PeriodicTimer(options.rate_hz, world.step_ns)
        self._waiting: list[_Exposure] = []
        self._work: queue.SimpleQueue[_Exposure | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._frozen: tuple[Any, Any] | None = None
        root = names.camera
        queue_size = LOCKSTEP_QUEUE if lockstep else LIVE_QUEUE
        self._rgb = Publisher(f"{root}/color/image_raw", Image, queue_size=queue_size)
        self._rgb_info = Publisher(f"{root}/color/camera_info", CameraInfo)
        self._depth = Publisher(f"{root}/aligned_depth_to_color/image_raw", Image, queue_size=queue_size)
        self._depth_info = Publisher(f"{root}/aligned_depth_to_color/camera_info", CameraInfo)
        self._tf_static = Publisher("/tf_static", TFMessage, latch=True)
        self._publish_frames(names.frame_prefix)
        self._thread = threading.Thread(target=self._draw_all, name="camera", daemon=True)
        self._thread.start()

    def on_step(self, now_ns: int) -> None:
        """Expose when it is time to, let go what is due.

        Raises:
            DeviceFault: if drawing failed or, with ``/clock``, took longer than ``DRAWING_LIMIT_S``.
        """
        if self._failure is not None:
            raise DeviceFault(f"simulated camera: {self._failure}", "see the message above") from self._failure
        if self._ticks.due(now_ns) and self._is_wanted():
            if self._lockstep or len(self._waiting) < MAX_WAITING:
                self._expose(now_ns)
            else:
                self.left_out += 1
        for exposure in self._waiting:
            if exposure.due_ns <= now_ns:
                exposure.may_go.set()
                if self._lockstep and not exposure.gone.wait(DRAWING_LIMIT_S):
                    raise DeviceFault(
                        f"simulated camera: no picture within {DRAWING_LIMIT_S:g} s", "check the OpenGL driver"
                    )
        self._waiting = [exposure for exposure in self._waiting if not exposure.gone.is_set()]

    def restart(self, random: np.random.Generator) -> None:
        """The robot was placed: draw errors from ``random``."""
        self._noise.restart(random)

    def close(self) -> None:
        """End the drawing thread, which owns the OpenGL context."""
        for exposure in self._waiting:
            exposure.may_go.set()
        self._work.put(None)
        self._thread.join(DRAWING_LIMIT_S)

    def _publish_frames(self, prefix: str) -> None:
        """What the camera's own driver says of its inside: where the colour sensor sits, and its optical frame."""
        stamp_ns = self._stamps.stamp_ns(self._clock.now_ns())
        link, color = f"{prefix}camera_link", f"{prefix}camera_color_frame"
        place, straight = self._mount.color, (0.0, 0.0, 0.0)
        turned = Quaternion(*quaternion_rpy(*np.radians(place.rpy_deg).tolist()))
        optical = Quaternion(*quaternion_rpy(*OPTICAL_RPY_RAD))
        frames = [
            messages.transform(stamp_ns, link, color, place.xyz_m, turned),
            messages.transform(stamp_ns, color, self._frame, straight, optical),
        ]
        self._tf_static.publish(messages.transforms(frames))

    def _is_wanted(self) -> bool:
        return "camera_silent" not in self._faults and any(
            target.has_subscribers for target in (self._rgb, self._depth, self._rgb_info, self._depth_info)
        )

    def _expose(self, now_ns: int) -> None:
        stamp_ns = self._stamps.stamp_ns(now_ns) + seconds_to_ns(self._faults.value("clock_skew_s"))
        sensor = self._true_mount.sensor(self._world.pose, *self._head.pointing(now_ns))
        motion = camera_motion(self._true_mount, self._world, self._head, now_ns)
        exposure = _Exposure(stamp_ns, now_ns + self._latency_ns, sensor, motion)
        self._waiting.append(exposure)
        self._work.put(exposure)

    def _draw_all(self) -> None:
        """The drawing thread's life."""
        renderer: SceneRenderer | None = None
        try:
            while (exposure := self._work.get()) is not None:
                if self._rgb.has_subscribers or self._depth.has_subscribers:
                    if renderer is None:
                        renderer = SceneRenderer(self._world.scene_model, self._intrinsics)
                    images = self._images(renderer, exposure)
                else:
                    images = None
                exposure.may_go.wait()
                self._publish(exposure, images)
                exposure.gone.set()
        except Exception as error:
            self._failure = error
            rospy.logerr(f"simulated camera: {error}")
            raise
        finally:
            for exposure in self._waiting:
                exposure.gone.set()
            if renderer is not None:
                renderer.close()

    def _images(self, renderer: SceneRenderer, exposure: _Exposure) -> tuple[Any, Any]:
        if "camera_frozen" in self._faults and self._frozen is not None:
            for message in self._frozen:
                message.header = messages.header(exposure.stamp_ns, self._frame)
            return self._frozen
        rgb, depth_m = renderer.render(exposure.sensor[:3, 3].copy(), opengl_rotation(exposure.sensor))
        rgb, depth_m = self._noise.spoil(rgb, depth_m, lambda: exposure.motion)
        depth_m = as_measured(depth_m, self._options)
        if "depth_32fc1" in self._faults:
            encoding, depth = "32FC1", depth_m
        elif "depth_mislabelled" in self._faults:
            encoding, depth = "16UC1", depth_m.astype(np.uint16)
        else:
            encoding, depth = "16UC1", np.rint(depth_m * np.float32(MM_PER_M)).astype(np.uint16)
        self._frozen = (
            messages.image(exposure.stamp_ns, self._frame, "rgb8", rgb),
            messages.image(exposure.stamp_ns, self._frame, encoding, depth),
        )
        return self._frozen

    def _publish(self, exposure: _Exposure, images: tuple[Any, Any] | None) -> None:
        faults = self._faults
        if images is not None and "rgb_silent" not in faults:
            self._rgb.publish(images[0])
        if images is not None and "depth_silent" not in faults:
            if "camera_unpaired" in faults:
                images[1].header = messages.header(exposure.stamp_ns + self._half_period_ns, self._frame)
            self._depth.publish(images[1])
        if "camera_info_silent" not in faults:
            info = messages.camera_info(exposure.stamp_ns, self._frame, self._intrinsics)
            self._rgb_info.publish(info)
            self._depth_info.publish(info)
