"""The camera's topics, rendered in a thread of their own so that the base never waits for an image.

With ``/clock`` an image is published exactly at its exposure plus the camera's latency; simulated time waits for the
rendering, and no image is lost. In real time images are published when they are rendered, and exposures that cannot be
rendered in time are dropped, as by a camera on a slow computer. Without subscribers nothing is rendered.
"""

import queue
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.ros.protocol import Frames
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, opengl_rotation, quaternion_rpy
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.simulation import CameraMotion
from robot_runtime.robots.camera_mount import CameraMount
from sim_bridge.rendering.renderer import SceneRenderer
from sim_bridge.robot.camera import CameraNoise, CameraOptions, camera_motion, quantized
from sim_bridge.robot.head import SimHead
from sim_bridge.ros.context import SimContext
from sim_bridge.ros.timing import PeriodicTimer

MAX_WAITING = 2
"""Exposures in real time that wait for rendering; the next is dropped."""

RENDERING_LIMIT_S = 30.0
"""Time limit of an image with ``/clock``; a software renderer takes 20 ms, and half a second for its first image."""

LIVE_QUEUE, LOCKSTEP_QUEUE = 4, 30
"""Images that wait per subscriber: in real time late images are useless; with ``/clock`` none may be lost."""

MM_PER_M = 1000

IMAGE, INFO = "sensor_msgs/Image", "sensor_msgs/CameraInfo"


@dataclass
class _Exposure:
    """One instant's view, on its way from the physics thread to subscribers."""

    stamp_ns: int
    due_ns: int
    sensor: NDArray[np.float64]
    motion: CameraMotion
    released: threading.Event = field(default_factory=threading.Event)
    published: threading.Event = field(default_factory=threading.Event)


class CameraTopics:
    """An RGB-D camera whose depth is registered to color.

    Static transforms report ``mount``; images are rendered with ``true_mount``. In ``lockstep``, simulated time waits
    for every image.

    Attributes:
        dropped: Number of exposures that could not be rendered in time.
    """

    def __init__(
        self,
        context: SimContext,
        head: SimHead,
        mount: CameraMount,
        true_mount: CameraMount,
        intrinsics: Intrinsics,
        options: CameraOptions,
        lockstep: bool,
    ) -> None:
        names, network = context.variant.names, context.network
        self.dropped, self._messages = 0, network.messages
        self._context, self._head, self._true_mount = context, head, true_mount
        self._intrinsics, self._options = intrinsics, options
        self._noise = CameraNoise(options, intrinsics)
        self._frame = names.frames.optical
        self._lockstep = lockstep
        self._latency_ns = seconds_to_ns(options.latency_s)
        step_ns = context.world.step_ns
        # Exposures are at steps of the world; of the shorter interval between two, half a period is the farthest.
        self._half_period_ns = seconds_to_ns(1 / options.rate_hz) // step_ns * step_ns // 2
        self._timer = PeriodicTimer(options.rate_hz, context.world.step_ns)
        self._waiting: list[_Exposure] = []
        self._work: queue.SimpleQueue[_Exposure | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._newest_images: tuple[Any, Any] | None = None
        queue_size = LOCKSTEP_QUEUE if lockstep else LIVE_QUEUE
        self._rgb = network.publisher(names.topics["color"], IMAGE, queue_size=queue_size)
        self._rgb_info = network.publisher(names.topics["color_info"], INFO)
        self._depth = network.publisher(names.topics["depth"], IMAGE, queue_size=queue_size)
        self._depth_info = network.publisher(names.topics["depth"].replace("image_raw", "camera_info"), INFO)
        self._tf_static = network.publisher("/tf_static", "tf2_msgs/TFMessage", latch=True)
        self._publish_static_transforms(names.frames, mount)
        self._thread = threading.Thread(target=self._render_all, name="camera", daemon=True)
        self._thread.start()

    def on_step(self, now_ns: int) -> None:
        """Expose at the camera's rate; release the images that are due.

        Raises:
            DeviceFault: Rendering failed or, with ``/clock``, took longer than ``RENDERING_LIMIT_S``.
        """
        if self._failure is not None:
            raise DeviceFault(f"simulated camera: {self._failure}", "see the message above") from self._failure
        if self._timer.due(now_ns) and self._is_needed():
            if self._lockstep or len(self._waiting) < MAX_WAITING:
                self._expose(now_ns)
            else:
                self.dropped += 1
        for exposure in self._waiting:
            if exposure.due_ns <= now_ns:
                exposure.released.set()
                if self._lockstep and not exposure.published.wait(RENDERING_LIMIT_S):
                    raise DeviceFault(
                        f"simulated camera: no image within {RENDERING_LIMIT_S:g} s", "check the OpenGL driver"
                    )
        self._waiting = [exposure for exposure in self._waiting if not exposure.published.is_set()]

    def restart(self, random: np.random.Generator) -> None:
        """The robot has been placed: draw errors from ``random``."""
        self._noise.restart(random)

    def close(self) -> None:
        """End the rendering thread, the owner of the OpenGL context."""
        for exposure in self._waiting:
            exposure.released.set()
        self._work.put(None)
        self._thread.join(RENDERING_LIMIT_S)

    def _publish_static_transforms(self, frames: Frames, mount: CameraMount) -> None:
        """Publish the color sensor's place in the camera, and its optical frame, as the camera's driver does."""
        stamp_ns = self._context.stamps.stamp_ns(self._context.clock.now_ns())
        color, place = f"{frames.prefix}camera_color_frame", mount.color
        rotation, messages = quaternion_rpy(*np.radians(place.rpy_deg).tolist()), self._messages
        self._tf_static.publish(
            messages.tf(
                messages.transform(stamp_ns, frames.camera, color, place.xyz_m, rotation),
                messages.transform(stamp_ns, color, frames.optical, (0.0, 0.0, 0.0), quaternion_rpy(*OPTICAL_RPY_RAD)),
            )
        )

    def _is_needed(self) -> bool:
        return "camera_silent" not in self._context.faults and any(
            publisher.has_subscribers for publisher in (self._rgb, self._depth, self._rgb_info, self._depth_info)
        )

    def _expose(self, now_ns: int) -> None:
        world = self._context.world
        sensor = self._true_mount.sensor(world.pose, *self._head.camera_angles(now_ns))
        motion = camera_motion(self._true_mount, world, self._head, now_ns)
        exposure = _Exposure(self._context.stamp_ns(now_ns), now_ns + self._latency_ns, sensor, motion)
        self._waiting.append(exposure)
        self._work.put(exposure)

    def _render_all(self) -> None:
        renderer: SceneRenderer | None = None
        try:
            while (exposure := self._work.get()) is not None:
                if self._rgb.has_subscribers or self._depth.has_subscribers:
                    if renderer is None:
                        renderer = SceneRenderer(self._context.world.scene_model, self._intrinsics)
                    images = self._images(renderer, exposure)
                else:
                    images = None
                exposure.released.wait()
                self._publish(exposure, images)
                exposure.published.set()
        except Exception as error:
            self._failure = error
            self._context.network.log_error(f"simulated camera: {error}")
            raise
        finally:
            for exposure in self._waiting:
                exposure.published.set()
            if renderer is not None:
                renderer.close()

    def _images(self, renderer: SceneRenderer, exposure: _Exposure) -> tuple[Any, Any]:
        if "camera_frozen" in self._context.faults and self._newest_images is not None:
            for message in self._newest_images:
                message.header = self._messages.header(exposure.stamp_ns, self._frame)
            return self._newest_images
        rgb, depth_m = renderer.render(exposure.sensor[:3, 3].copy(), opengl_rotation(exposure.sensor))
        rgb, depth_m = self._noise.apply(rgb, depth_m, lambda: exposure.motion)
        depth_m = quantized(depth_m, self._options)
        if "depth_32fc1" in self._context.faults:
            encoding, depth = "32FC1", depth_m
        elif "depth_mislabelled" in self._context.faults:
            encoding, depth = "16UC1", depth_m.astype(np.uint16)
        else:
            encoding, depth = "16UC1", np.rint(depth_m * np.float32(MM_PER_M)).astype(np.uint16)
        self._newest_images = (
            self._messages.image(exposure.stamp_ns, self._frame, "rgb8", rgb),
            self._messages.image(exposure.stamp_ns, self._frame, encoding, depth),
        )
        return self._newest_images

    def _publish(self, exposure: _Exposure, images: tuple[Any, Any] | None) -> None:
        faults = self._context.faults
        if images is not None and "rgb_silent" not in faults:
            self._rgb.publish(images[0])
        if images is not None and "depth_silent" not in faults:
            if "camera_unpaired" in faults:
                images[1].header = self._messages.header(exposure.stamp_ns + self._half_period_ns, self._frame)
            self._depth.publish(images[1])
        if "camera_info_silent" not in faults:
            info = self._messages.camera_info(exposure.stamp_ns, self._frame, self._intrinsics)
            self._rgb_info.publish(info)
            self._depth_info.publish(info)
