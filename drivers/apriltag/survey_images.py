"""Images of tags for a survey: from logs, or from a folder of images.

A folder has ``frames.yaml`` next to its images::

    lens: {width: 1280, height: 720, fx: 610.0, fy: 610.0, cx: 639.5, cy: 359.5}
    camera: {xyz_m: [0.0, 0.0, 0.88], rpy_deg: [0.0, 0.0, 0.0]}    # body frame (x forward) in base_link, head straight
    frames:
    - {image: 0001.png, x_m: 1.0, y_m: 2.0, yaw_deg: 90.0, pan_deg: 0.0, tilt_deg: -10.0}
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from drivers.apriltag.bundle_adjustment import TagView
from robot_runtime.common import config, image_files
from robot_runtime.common.bounded import TooLarge
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.common.quantities import MapCoordinate
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, Matrix, Offset, rotation_rpy, transform
from robot_runtime.errors import ConfigError
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.tag_detector import TagDetector
from robot_runtime.recording.reader import LogReader
from robot_runtime.robots.camera_mount import CameraMount

FRAMES_FILE = "frames.yaml"


@dataclass(frozen=True)
class Frame(config.Strict):
    """One image and the approximate pose of the robot; pan left and tilt up are positive."""

    image: str
    x_m: MapCoordinate
    y_m: MapCoordinate
    yaw_deg: float
    pan_deg: float = 0.0
    tilt_deg: float = 0.0


@dataclass(frozen=True)
class Frames(config.Strict):
    """The content of ``frames.yaml``."""

    lens: Lens
    camera: Offset
    frames: tuple[Frame, ...] = field(default_factory=tuple)


def views_from_log(path: Path, run: int, detector: TagDetector, mount: CameraMount | None) -> Iterator[TagView]:
    """Yield the tags seen in each step of a log.

    Raises:
        RecordingError: the file is not a log, or damaged.
    """
    with LogReader(path) as log:
        k = log.header.intrinsics
        lens = Lens(k.width, k.height, k.fx, k.fy, k.cx, k.cy)
        for step in log.steps():
            pan_rad, tilt_rad = step.head.pan_rad, step.head.tilt_rad
            if mount is None:
                camera = transform(log.header.mount, optical_axes(pan_rad, tilt_rad))
            else:
                camera = mount.sensor(SE2(), pan_rad, tilt_rad) @ _optical()
            # A pose in `odom` serves as first guess, too; surveyed tags must define the map then.
            yield _look(step.frame.rgb, lens, step.pose.pose, step.base.odom, run, camera, detector)


def views_from_folder(folder: Path, run: int, detector: TagDetector) -> Iterator[TagView]:
    """Yield the tags seen in each image of a folder.

    Raises:
        ConfigError: a file is missing, malformed or of another size; names the file.
    """
    path = folder / FRAMES_FILE
    listed = config.load(path, Frames)
    for frame in listed.frames:
        image = _read_image(folder / frame.image, f"{path}: {frame.image!r}")
        if image.shape != (listed.lens.height, listed.lens.width):
            raise ConfigError(
                f"{path}: {frame.image!r} is {image.shape[1]}x{image.shape[0]}, the lens "
                f"{listed.lens.width}x{listed.lens.height}",
                "give the lens of the mode that the images were taken in, and do not scale them",
            )
        head = rotation_rpy(0.0, -math.radians(frame.tilt_deg), 0.0)
        head = rotation_rpy(0.0, 0.0, math.radians(frame.pan_deg)) @ head
        camera = listed.camera.matrix.copy()
        camera[:3, :3] = head @ camera[:3, :3] @ _optical()[:3, :3]
        pose = SE2(frame.x_m, frame.y_m, math.radians(frame.yaw_deg))
        yield _look(image, listed.lens, pose, None, run, camera, detector)


def _read_image(path: Path, where: str) -> NDArray[np.uint8]:
    remedy = "name PNG or JPEG files of that folder"
    try:
        image = image_files.decode_image(path.read_bytes(), cv2.IMREAD_GRAYSCALE)
    except (OSError, TooLarge) as error:
        raise ConfigError(f"{where} cannot be read: {error}", remedy) from error
    if image is None:
        raise ConfigError(f"{where} is not a readable image", remedy)
    return np.asarray(image, np.uint8)


def _look(
    image: NDArray[np.uint8], lens: Lens, pose: SE2, odom: SE2 | None, run: int, camera: Matrix, detector: TagDetector
) -> TagView:
    rays = {seen.id: lens.rays(seen.corners_px)[:, :2] for seen in detector.detect(image)}
    return TagView(pose, odom, run, camera, rays, math.sqrt(lens.fx * lens.fy))


def _optical() -> Matrix:
    return transform((0.0, 0.0, 0.0), rotation_rpy(*OPTICAL_RPY_RAD))
