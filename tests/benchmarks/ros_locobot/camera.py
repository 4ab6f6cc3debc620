"""Benchmark of image transport: lost pairs of color and depth, and processor time of receiving them.

A separate process publishes as a RealSense does; this process receives with the camera driver and converts every pair
to arrays.
"""

from __future__ import annotations

from collections.abc import Callable

from drivers.ros.camera.driver import RosCamera
from drivers.ros.connection.clock import RosClock
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.options import CameraOptions
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.options import RosOptions
from robot_runtime.hal import Intrinsics
from tests.benchmarks.report import Row
from tests.benchmarks.ros_locobot.network import Network
from tests.benchmarks.ros_locobot.pairs import HFOV_DEG, SIZE, received_rows

PUBLISHER = """
import numpy, rospy
from sensor_msgs.msg import CameraInfo, Image
rospy.init_node("camera", disable_rostime=True)
def topic(name, kind):
    return rospy.Publisher("/camera/" + name, kind, queue_size=4, tcp_nodelay=True)
color, depth = topic("color/image_raw", Image), topic("aligned_depth_to_color/image_raw", Image)
info = topic("color/camera_info", CameraInfo)
noise = numpy.random.default_rng(0)
images = [noise.integers(0, 256, (480, 640, 3), numpy.uint8).tobytes() for _ in range(4)]
depths = [noise.integers(500, 5000, (480, 640), numpy.uint16).tobytes() for _ in range(4)]
described = CameraInfo(width=640, height=480, distortion_model="plumb_bob", D=[0.0] * 5)
described.K = [600.0, 0.0, 320.0, 0.0, 600.0, 240.0, 0.0, 0.0, 1.0]
described.R = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
described.P = [600.0, 0.0, 320.0, 0.0, 0.0, 600.0, 240.0, 0.0, 0.0, 0.0, 1.0, 0.0]
rate = rospy.Rate(30)
number = 0
while not rospy.is_shutdown():
    number += 1
    stamp = rospy.Time.now()
    described.header.stamp, described.header.frame_id = stamp, "camera_color_optical_frame"
    info.publish(described)
    for out, content, encoding, size in ((color, images, "rgb8", 3), (depth, depths, "16UC1", 2)):
        image = Image(height=480, width=640, encoding=encoding, step=640 * size, data=content[number % 4])
        image.header.stamp, image.header.frame_id = stamp, "camera_color_optical_frame"
        out.publish(image)
    rate.sleep()
"""


def camera_rows(network: Network, trials: int, advance: Callable[[], None]) -> list[Row]:
    """Return both figures over ``trials`` pairs; ``advance`` is called after each of them."""
    publisher = network.start("-c", PUBLISHER)
    options = RosOptions("pyrobot-kobuki", CameraOptions("habitat"))
    clock = RosClock(options.clock.max_skew_s, options.clock.stall_s)
    session = Session(options.master, clock)
    camera = RosCamera(session, options, Intrinsics.from_hfov(*SIZE, HFOV_DEG), MotionHistory())
    rows = received_rows(camera, clock, trials, advance)
    network.stop(publisher)
    return rows
