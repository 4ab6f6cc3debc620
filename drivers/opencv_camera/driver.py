"""A webcam as the camera of a robot: ``driver: drivers.opencv_camera.driver.make_camera``."""

from collections.abc import Mapping
from typing import Any

from drivers.opencv_camera.emulator import EmulatedFeed
from drivers.opencv_camera.feed import Feed, WebcamFeed
from drivers.opencv_camera.options import OpenCvOptions
from drivers.opencv_camera.source import WebcamSource
from robot_runtime.common import config
from robot_runtime.hal import Robot
from robot_runtime.imaging.camera import SourceCamera, source_camera
from robot_runtime.robots.loader import RobotContext


def make_camera(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> SourceCamera:
    """Return the camera, disconnected; emulated on a simulated robot.

    Raises:
        ConfigError: a bad option, or a lens that cannot fill the training camera's image.
    """
    chosen = config.parse(dict(options), OpenCvOptions, where)
    feed: Feed = WebcamFeed(chosen, robot.clock)
    if robot.simulation is not None:
        feed = EmulatedFeed(robot.simulation, chosen)
    return source_camera(WebcamSource(robot.clock, chosen, feed), robot, context, chosen.imaging)
