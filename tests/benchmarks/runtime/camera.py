"""``bench camera``: speed and accuracy of the reprojection of raw color and depth.

Speeds are by the CPU time of one thread, so that other programs on the computer do not count.
"""

from __future__ import annotations

import resource
import statistics
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tests.benchmarks.report import JsonFile, Row, cpu_s, report

if TYPE_CHECKING:
    from robot_runtime.imaging.reproject import Reprojector

HFOV_DEG = 79.0
SIZE = (640, 480)

DEPTH_RANGE_M = (0.5, 5.46)
"""Depth range of an Azure Kinect's narrow modes; the far limit is the larger of the two."""

ROUND = 20
"""Frames per measurement; the figure is the median over the rounds."""


def camera(
    frames: Annotated[int, typer.Option(min=100, help="Frames over which memory is watched.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of rooms and noise.")] = 0,
    json: JsonFile = None,
) -> None:
    """Measure cameras: speed, exactness and memory of reprojection, recordings, and the SDKs' own ways beside them."""
    from robot_runtime.common.console import console
    from tests.benchmarks.devices import azure_kinect, realsense

    rows = [*kinect_rows(frames, seed), *azure_kinect.rows(frames, seed), *realsense.rows(frames, seed)]
    report("camera", rows, json, console)


def kinect_rows(frames: int, seed: int) -> list[Row]:
    """Rows of the reprojection of an Azure Kinect's 720p color and narrow depth to 640x480 at 79 degrees."""
    import numpy as np

    from robot_runtime.hal import Intrinsics
    from robot_runtime.hal.lens import Lens
    from robot_runtime.imaging.reproject import Reprojector
    from tests.benchmarks.runtime.ray_cast_room import Room, color_image, depth_counts, time_of_flight_rig

    rig, target = time_of_flight_rig(), Intrinsics.from_hfov(*SIZE, HFOV_DEG)
    room = Room.random(seed)
    color, depth = color_image(room, rig.color), depth_counts(room, rig, *DEPTH_RANGE_M)
    reprojector = Reprojector(rig, target, depth_range_m=DEPTH_RANGE_M)
    reprojector.warm_up()
    seen = reprojector(color, depth)
    truth_m = room.cast(np.zeros(3), Lens.of(target).pixel_rays())
    error_mm = 1000 * np.abs(seen.depth_m - truth_m)[~seen.holes]

    def work() -> None:
        reprojector(color, depth)

    fps, low, high = frames_per_s(work, min(frames, 300))
    what = f"1280x720 + 640x576 to {SIZE[0]}x{SIZE[1]} at {HFOV_DEG:g}°"
    note = f"against ray casting, {error_mm.size} pixels; raw depth in whole millimetres"
    return [
        Row(
            "kinect_fps",
            f"{what}: decoded pairs per second on one core",
            fps,
            "1/s",
            80,
            low=low,
            high=high,
            note="color and depth; CPU time",
        ),
        Row(
            "kinect_depth_median_mm", f"{what}: error of depth", float(np.median(error_mm)), "mm", 0.2, "<=", note=note
        ),
        Row(
            "kinect_depth_p95_mm",
            "the same, 95th percentile",
            float(np.percentile(error_mm, 95)),
            "mm",
            0.5,
            "<=",
            note=f"99th: {np.percentile(error_mm, 99):.2f} mm",
        ),
        *memory_rows(reprojector, work, frames),
    ]


def memory_rows(reprojector: Reprojector, work: Callable[[], None], frames: int) -> list[Row]:
    """Rows of the memory that a frame allocates, and of the process's growth over many frames."""
    tracemalloc.start()
    try:
        work()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(10):
            work()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    work()
    resident_mb = _resident_mb()
    for _ in range(frames):
        work()
    grown_mb = _resident_mb() - resident_mb
    image_bytes = reprojector.target.width * reprojector.target.height
    return [
        Row(
            "kinect_allocated_images",
            "memory for images, allocated per frame after the first",
            float((peak - before) // image_bytes),
            "images",
            0,
            "<=",
            note=f"largest sum of Python's own objects at a time: {peak - before} bytes",
        ),
        Row("kinect_grown_mb", f"resident memory, grown over {frames} frames", grown_mb, "MB", 1, "<="),
    ]


def frames_per_s(work: Callable[[], object], frames: int) -> tuple[float, float, float]:
    """Calls per second of one thread: median, minimum and maximum over rounds of ``ROUND``."""
    rates = []
    with one_thread():
        for _ in range(max(3, frames // ROUND)):
            began_s = cpu_s(resource.RUSAGE_THREAD)
            for _ in range(ROUND):
                work()
            rates.append(ROUND / (cpu_s(resource.RUSAGE_THREAD) - began_s))
    return statistics.median(rates), min(rates), max(rates)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep OpenCV from starting threads, whose CPU time would not be counted."""
    import cv2

    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(threads)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6
