"""Images over ROS 2: a publisher in a process of its own, as a RealSense, and the camera driver here."""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import rclpy
from rclpy.qos import QoSProfile
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo, Image

from drivers.ros.camera.driver import RosCamera
from drivers.ros.connection.clock import RosClock
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.options import CameraOptions
from drivers.ros2.options import NetworkOptions, Ros2Options
from drivers.ros2.session import Session
from robot_runtime.hal import Intrinsics
from tests.benchmarks.report import Row
from tests.benchmarks.ros_locobot.pairs import HFOV_DEG, RATE_HZ, SIZE, received_rows
from tests.ros2 import ros2_guard, ros2_network

PROFILE = Path(__file__).parents[3] / "launch/dds/fastdds_images.xml"
FRAME = "camera_color_optical_frame"


def camera_rows(domain: int, folder: Path, pairs: int) -> list[Row]:
    """The rows of received pairs, and the loss with Fast DDS' own profile, whose shared memory is below one image."""
    rows = _rows(domain, folder, pairs, PROFILE)
    stock = ros2_network.environment(folder)["FASTDDS_DEFAULT_PROFILES_FILE"]
    lost = replace(_rows(domain, folder, pairs, Path(stock))[0], id="rgbd_loss_stock_pct", target=None)
    return [*rows, replace(lost, note=f"{lost.note}; publisher without {PROFILE.name}")]


def _rows(domain: int, folder: Path, pairs: int, profile: Path) -> list[Row]:
    options = Ros2Options("create3", CameraOptions("habitat"), network=NetworkOptions(domain, connect_timeout_s=20.0))
    clock = RosClock(options.clock.max_skew_s, options.clock.stall_s)
    intrinsics = Intrinsics.from_hfov(*SIZE, HFOV_DEG)
    camera = RosCamera(Session(options.network, clock), options, intrinsics, MotionHistory())
    with closing(ros2_guard.Program(domain, folder, "-m", "tests.benchmarks.ros2.camera", profile)):
        return received_rows(camera, clock, pairs, lambda: None)


def publish() -> None:
    """Publish noise as color and depth, with the calibration, until this process is ended."""
    os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = sys.argv[1]
    rclpy.init()
    node, noise = rclpy.create_node("camera"), np.random.default_rng(0)
    quality = QoSProfile(depth=10)  # reliable, as realsense2_camera's SYSTEM_DEFAULT
    info = node.create_publisher(CameraInfo, "/camera/color/camera_info", quality)
    streams = [
        (node.create_publisher(Image, topic, quality), encoding, images)
        for topic, encoding, images in (
            ("/camera/color/image_raw", "rgb8", noise.integers(0, 256, (4, *SIZE[::-1], 3), np.uint8)),
            (
                "/camera/aligned_depth_to_color/image_raw",
                "16UC1",
                noise.integers(500, 5000, (4, *SIZE[::-1]), np.uint16),
            ),
        )
    ]
    messages = [[_image(pixels, encoding) for pixels in images] for _, encoding, images in streams]
    described = CameraInfo(width=SIZE[0], height=SIZE[1], distortion_model="plumb_bob", d=[0.0] * 5)
    described.k = [600.0, 0.0, 320.0, 0.0, 600.0, 240.0, 0.0, 0.0, 1.0]
    described.p = [600.0, 0.0, 320.0, 0.0, 0.0, 600.0, 240.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    began_ns = time.time_ns()
    for number in range(sys.maxsize):
        exposed_ns = began_ns + round(number * 1e9 / RATE_HZ)  # a publisher that is late loses nothing
        time.sleep(max(0.0, (exposed_ns - time.time_ns()) / 1e9))
        stamp = Time(nanoseconds=exposed_ns).to_msg()
        described.header.stamp, described.header.frame_id = stamp, FRAME
        info.publish(described)
        for (publisher, _, _), waiting in zip(streams, messages, strict=True):
            message = waiting[number % len(waiting)]
            message.header.stamp, message.header.frame_id = stamp, FRAME
            publisher.publish(message)


def _image(pixels: np.ndarray, encoding: str) -> Image:
    height, width = pixels.shape[:2]
    message = Image(height=height, width=width, encoding=encoding, step=pixels.nbytes // height)
    message.data.frombytes(pixels.tobytes())
    return message


if __name__ == "__main__":
    publish()
