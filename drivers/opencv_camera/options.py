"""The ``options`` of a webcam in a robot's or camera's YAML file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from robot_runtime.common import config
from robot_runtime.imaging.camera import ImagingOptions


@dataclass(frozen=True)
class OpenCvOptions:
    """Which device, and how it runs.

    Attributes:
        device: number or path; numbers change when devices are plugged in another order, paths under
            ``/dev/v4l/by-id`` do not.
        format: the four characters of the pixel format that the device is asked for; cameras give their large sizes
            compressed only. Empty leaves it to the device.
        hfov_deg: across the full width, for as long as no calibration says better; the lens then counts as ideal.
        exposure: the device's own counts (``v4l2-ctl -l`` lists them; for many cameras units of 0.1 ms); None leaves it
            automatic, and then a dark room blurs.
        white_balance_k: kelvin; None leaves it automatic. gain: the device's own counts.
        latency_s: from the middle of an exposure to the stamp that the kernel gives it: what
            ``robot-runtime calibrate latency`` measures.
        start_timeout_s: how long the first image may take.
    """

    hfov_deg: Annotated[float, Field(gt=1, lt=170)]
    device: int | str = 0
    width: Annotated[int, Field(ge=16, le=8192)] = 1280
    height: Annotated[int, Field(ge=16, le=8192)] = 720
    rate_hz: Annotated[float, Field(gt=0, le=240)] = 30.0
    format: Annotated[str, Field(pattern=r"^(.{4})?$")] = "MJPG"
    exposure: float | None = None
    white_balance_k: Annotated[float, Field(gt=0)] | None = None
    gain: Annotated[float, Field(ge=0)] | None = None
    latency_s: Annotated[float, Field(ge=0, le=1)] = 0.0
    start_timeout_s: Annotated[float, Field(gt=0, le=60)] = 5.0
    imaging: ImagingOptions = field(default_factory=ImagingOptions)

    __pydantic_config__ = config.STRICT
