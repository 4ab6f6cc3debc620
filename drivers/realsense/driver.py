"""A RealSense as the camera of a robot: ``driver: drivers.realsense.driver.make_camera``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drivers.realsense.bus import Bus, UsbBus
from drivers.realsense.emulator import EmulatedD435, EmulatedOptions
from drivers.realsense.live import LiveSource
from drivers.realsense.options import StreamOptions
from drivers.realsense.recorded import RecordedSource
from drivers.realsense.source import PipelineSource
from robot_runtime.common import config
from robot_runtime.hal import Robot
from robot_runtime.imaging.camera import ImagingOptions, SourceCamera, source_camera
from robot_runtime.robots.loader import RobotContext


@dataclass(frozen=True)
class RealSenseOptions(StreamOptions, config.Strict):
    """The ``options`` of the camera's YAML file.

    Attributes:
        imaging: conversion of raw pairs to the training camera's images, as for every camera.
        emulated: behavior of the emulated device on a simulated robot.
    """

    imaging: ImagingOptions = field(default_factory=ImagingOptions)
    emulated: EmulatedOptions = field(default_factory=EmulatedOptions)


def make_camera(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> SourceCamera:
    """Return the camera, disconnected: a recording if the options name one, else a real or an emulated device.

    Raises:
        ConfigError: a bad option, or modes that cannot fill the training camera's image.
    """
    chosen = config.parse(dict(options), RealSenseOptions, where)
    source: PipelineSource
    if chosen.file:
        source = RecordedSource(robot.clock, chosen, where)
    else:
        bus: Bus = UsbBus()
        if robot.simulation is not None:
            modes = (chosen.color, chosen.depth, chosen.rate_hz)
            bus = EmulatedD435(robot.simulation, *modes, chosen.emulated, where)
        source = LiveSource(robot.clock, chosen, bus, where)
    return source_camera(source, robot, context, chosen.imaging)
