"""The ``options`` of a webcam in a robot's or camera's YAML file."""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from robot_runtime.common import config
from robot_runtime.common.quantities import FieldOfView, Latency, Timeout
from robot_runtime.imaging.camera import ImagingOptions


@dataclass(frozen=True)
class OpenCvOptions(config.Strict):
    """Device and mode.

    Attributes:
        hfov_deg: field of view across the full width, of an ideal lens unless a calibration is given.
        device: number, dependent on the order of connecting, or path, best under ``/dev/v4l/by-id``.
        width: width of the image.
        height: height of the image.
        rate_hz: rate of the images.
        format: four characters of the pixel format; large sizes are usually compressed. Empty for the device's default.
        exposure: exposure time in the device's units (``v4l2-ctl -l``; often 0.1 ms); None for automatic, which blurs
            in dark rooms.
        white_balance_k: color temperature, kelvin; None for automatic.
        gain: gain in the device's units; None for automatic.
        latency_s: time from the middle of an exposure to the kernel's stamp, see ``robot-runtime calibrate latency``.
        start_timeout_s: time limit of the first image.
        imaging: conversion to the training camera's images, as for every camera.
    """

    hfov_deg: Annotated[FieldOfView, Field(lt=170)]
    device: int | str = 0
    width: Annotated[int, Field(ge=16, le=8192)] = 1280
    height: Annotated[int, Field(ge=16, le=8192)] = 720
    rate_hz: Annotated[float, Field(gt=0, le=240)] = 30.0
    format: Annotated[str, Field(pattern=r"^(.{4})?$")] = "MJPG"
    exposure: float | None = None
    white_balance_k: Annotated[float, Field(gt=0)] | None = None
    gain: Annotated[float, Field(ge=0)] | None = None
    latency_s: Latency = 0.0
    start_timeout_s: Timeout = 5.0
    imaging: ImagingOptions = field(default_factory=ImagingOptions)
