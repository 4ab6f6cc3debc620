"""Rows of ``bench camera``: reprojection compared with the SDK's transform, and recordings."""

from __future__ import annotations

import resource
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from robot_runtime.common.clock import Stopwatch, SystemClock
from robot_runtime.errors import DriverMissing, StaleData
from tests.benchmarks.report import Row, cpu_s
from tests.benchmarks.runtime.camera import DEPTH_RANGE_M, HFOV_DEG, SIZE, one_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from drivers.azure_kinect.calibration import FactoryCalibration
    from drivers.azure_kinect.sdk import Sdk
    from robot_runtime.imaging.reproject import Reprojector

SDK_TIMES, OUR_TIMES = 5, 60
FRAMES = 150
"""Frames of the temporary recording, 250 MB."""

_VS_SDK = "depth to the color camera: times as fast as the SDK's transform (720p, narrow depth)"
_MKV = f"recording to observation, {SIZE[0]}x{SIZE[1]} at {HFOV_DEG:g}°, JPEG decoded beside"


def rows(frames: int, seed: int) -> list[Row]:
    """Return the rows ``kinect_vs_sdk``, which needs the SDK and a screen, and ``mkv_fps``, which needs the SDK."""
    from drivers.azure_kinect.calibration import FactoryCalibration
    from drivers.azure_kinect.nominal_calibration import factory_document
    from drivers.azure_kinect.sdk import load_sdk
    from robot_runtime.hal import Intrinsics
    from robot_runtime.imaging.reproject import Reprojector
    from tests.benchmarks.runtime.ray_cast_room import Room, color_image, depth_counts

    try:
        sdk = load_sdk()
    except DriverMissing as missing:
        return [
            Row("kinect_vs_sdk", _VS_SDK, None, "x", 100, note=missing.message),
            Row("mkv_fps", _MKV, None, "1/s", 45, note=missing.message),
        ]
    factory = FactoryCalibration(sdk, factory_document(), "nominal calibration", "nominal")
    rig = factory.of("720p", "nfov")
    room = Room.random(seed)
    color, depth = color_image(room, rig.color), depth_counts(room, rig, *DEPTH_RANGE_M)
    reprojector = Reprojector(rig, Intrinsics.from_hfov(*SIZE, HFOV_DEG), depth_range_m=DEPTH_RANGE_M)
    reprojector.warm_up()
    return [compare_with_sdk(reprojector, color, depth), _recorded(sdk, factory, reprojector, color, depth, seed)]


def compare_with_sdk(
    reproject: Callable[[NDArray[np.uint8], NDArray[np.uint16]], object],
    color: NDArray[np.uint8],
    depth: NDArray[np.uint16],
) -> Row:
    """Return the speed relative to the SDK's transform; not run where the SDK's cannot.

    Args:
        reproject: this project's reprojection.
        color: color image to reproject.
        depth: depth image to reproject.
    """
    from drivers.azure_kinect import sdk_transform

    answer = sdk_transform.measure_in_subprocess(SDK_TIMES)
    if "milliseconds" not in answer:
        note = f"the SDK's transform cannot run here: {answer['reason']}; it needs a screen with OpenGL 4.4, or Xvfb"
        return Row("kinect_vs_sdk", _VS_SDK, None, "x", 100, note=note)
    taken_s = []
    with one_thread():
        for _ in range(OUR_TIMES):
            timer = Stopwatch()
            reproject(color, depth)
            taken_s.append(timer.elapsed_s())
    ours_ms = 1000 * statistics.median(taken_s)
    return Row(
        "kinect_vs_sdk",
        _VS_SDK,
        answer["milliseconds"] / ours_ms,
        "x",
        100,
        note=f"ours, color included, straight to the observation: {ours_ms:.1f} ms; "
        f"the SDK's, on the OpenGL of this computer's screen or of Xvfb: {answer['milliseconds']:.0f} ms",
    )


def _recorded(
    sdk: Sdk,
    factory: FactoryCalibration,
    reprojector: Reprojector,
    color: NDArray[np.uint8],
    depth: NDArray[np.uint16],
    seed: int,
) -> Row:
    from drivers.azure_kinect.source import KinectSource
    from drivers.azure_kinect.streams import RecordedStream

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.mkv"
        jpeg_kb = _write(sdk, factory, path, color, depth, seed)
        clock = SystemClock()
        with KinectSource(sdk, clock, RecordedStream(sdk, clock, path, real_time=False)) as source, one_thread():
            before_s, mine_s = cpu_s(resource.RUSAGE_SELF), cpu_s(resource.RUSAGE_THREAD)
            timer, count = Stopwatch(), 0
            while True:
                try:
                    raw = source.read(0, 1.0)
                except StaleData:  # the end of the recording
                    break
                reprojector(raw.color, raw.depth)
                count += 1
            wall_s = timer.elapsed_s()
            mine_s = cpu_s(resource.RUSAGE_THREAD) - mine_s
            beside_s = cpu_s(resource.RUSAGE_SELF) - before_s - mine_s
    return Row(
        "mkv_fps",
        _MKV,
        count / max(mine_s, beside_s),
        "1/s",
        45,
        note=f"on two free cores: by the CPU time of the busier thread (drawing {1000 * mine_s / count:.1f} ms, "
        f"reading and decoding {1000 * beside_s / count:.1f} ms a frame, JPEG of {jpeg_kb:.0f} kB); "
        f"by the clock, with all else that ran here: {count / wall_s:.0f}/s",
    )


def _write(
    sdk: Sdk, factory: FactoryCalibration, path: Path, color: NDArray[np.uint8], depth: NDArray[np.uint16], seed: int
) -> float:
    """Write a recording with images of a real one's size, 217 kB, and return their size in kB."""
    import cv2
    import numpy as np

    from drivers.azure_kinect.device import Configuration
    from drivers.azure_kinect.mkv import MkvWriter
    from drivers.azure_kinect.sdk import Capture, Image

    grain = np.random.default_rng(seed).integers(-12, 13, color.shape)
    grainy = np.clip(color + grain, 0, 255).astype(np.uint8)
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(grainy, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 90])
    data = np.asarray(jpeg, np.uint8).reshape(-1)
    writer = MkvWriter(sdk, path, Configuration("720p", "nfov", 30, imu=False), factory.raw)
    for number in range(FRAMES):
        at_us = 1_000_000 + number * 33_333
        writer.write(Capture(Image(data, at_us), Image(depth, at_us), size=(color.shape[1], color.shape[0])))
    writer.close()
    return data.size / 1000
