"""An Azure Kinect, or a recording of one, as a robot's camera.

``driver: drivers.azure_kinect.driver.make_camera``, or ``drivers.azure_kinect.driver.make_playback``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from drivers.azure_kinect import modes
from drivers.azure_kinect.device import Configuration, KinectDevice, SdkDevice
from drivers.azure_kinect.emulator import EmulatedKinect, EmulatedOptions
from drivers.azure_kinect.sdk import load_sdk
from drivers.azure_kinect.source import KinectSource
from drivers.azure_kinect.streams import Controls, LiveStream, RecordedStream
from robot_runtime.common import config
from robot_runtime.common.quantities import Latency
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Camera, Robot
from robot_runtime.imaging.camera import ImagingOptions, source_camera
from robot_runtime.robots.loader import RobotContext


@dataclass(frozen=True)
class KinectOptions(config.Strict):
    """The ``options`` of an Azure Kinect in a robot's YAML file.

    Attributes:
        serial: number of the device, if there are several.
        color: 720p, 1080p, 1440p, 1536p, 2160p or 3072p.
        depth: nfov, nfov_2x2, wfov or wfov_2x2.
        rate_hz: 5, 15 or 30.
        exposure_us: exposure time of color; None for automatic.
        white_balance_k: color temperature, kelvin; None for automatic.
        imu: whether the inertial sensors are read.
        warm_up: number of captures dropped after the start.
        latency_s: least delay from the middle of an exposure to its arrival, see ``calibrate latency``.
        record_to: new file for a recording in the SDK's format (.mkv).
        imaging: conversion to the training camera's images, as for every camera.
        emulated: behavior of the emulated device on a simulated robot.
    """

    serial: str = ""
    color: str = "720p"
    depth: str = "nfov"
    rate_hz: int = 30
    exposure_us: Annotated[int, Field(ge=500, le=133_330)] | None = None
    white_balance_k: Annotated[int, Field(ge=2500, le=12_500, multiple_of=10)] | None = None
    imu: bool = False
    warm_up: Annotated[int, Field(ge=0, le=300)] = 10
    latency_s: Latency = 0.05
    record_to: str | None = None
    imaging: ImagingOptions = field(default_factory=ImagingOptions)
    emulated: EmulatedOptions = field(default_factory=EmulatedOptions)


@dataclass(frozen=True)
class PlaybackOptions(config.Strict):
    """The ``options`` of a recording.

    Attributes:
        path: recording of the Kinect SDK (.mkv).
        real_time: whether to play at the original pace; else each request yields the next capture.
        imaging: conversion to the training camera's images, as for every camera.
    """

    path: str
    real_time: bool = True
    imaging: ImagingOptions = field(default_factory=ImagingOptions)


def make_camera(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Camera:
    """Return the camera, disconnected: a real device, or an emulated one on a simulated robot.

    Raises:
        ConfigError: a bad option, incompatible modes, or too little coverage of the training camera.
        DriverMissing: the SDK is not installed.
    """
    chosen = config.parse(dict(options), KinectOptions, where)
    modes.check(chosen.color, chosen.depth, chosen.rate_hz, where)
    if chosen.exposure_us is not None and chosen.exposure_us > 1_000_000 / chosen.rate_hz:
        raise ConfigError(
            f"{where}: exposure_us: {chosen.exposure_us} is longer than a period at {chosen.rate_hz} Hz",
            "expose for a shorter time, or at a lower rate_hz",
        )
    record_to = None if chosen.record_to is None else Path(chosen.record_to)
    if record_to is not None and record_to.exists():
        raise ConfigError(
            f"{where}: record_to: {record_to} exists", "name another file; recordings are not overwritten"
        )
    sdk = load_sdk()
    simulation = robot.simulation

    def open_device() -> KinectDevice:
        if simulation is not None:
            return EmulatedKinect(sdk, simulation, chosen.emulated)
        return SdkDevice(sdk, chosen.serial)

    configuration = Configuration(chosen.color, chosen.depth, chosen.rate_hz, chosen.imu)
    # An emulated camera needs no time to adjust.
    warm_up = chosen.warm_up if simulation is None else 0
    controls = Controls(chosen.exposure_us, chosen.white_balance_k, warm_up, chosen.latency_s)
    stream = LiveStream(sdk, robot.clock, configuration, controls, open_device)
    return source_camera(KinectSource(sdk, robot.clock, stream, record_to), robot, context, chosen.imaging)


def make_playback(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Camera:
    """Return the camera of a recording, disconnected.

    Raises:
        ConfigError: a bad option, or too little coverage of the training camera.
        DriverMissing: the SDK is not installed.
    """
    chosen = config.parse(dict(options), PlaybackOptions, where)
    sdk = load_sdk()
    stream = RecordedStream(sdk, robot.clock, Path(chosen.path), chosen.real_time)
    return source_camera(KinectSource(sdk, robot.clock, stream), robot, context, chosen.imaging)
