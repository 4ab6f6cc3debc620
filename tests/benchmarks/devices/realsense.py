"""Rows of ``bench camera``: reprojection compared with the SDK's ``rs.align``."""

from __future__ import annotations

import resource
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from robot_runtime.errors import DriverMissing
from tests.benchmarks.report import Row, cpu_s
from tests.benchmarks.runtime.camera import one_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MODE = "1280x720"
SIZE, HFOV_DEG = (640, 480), 69.0
"""Image and field of view that a D435's color sensor fills; it cannot fill 79 degrees."""

RANGE_M = (0.3, 9.0)
ROUNDS = 31

LABEL = f"pair of {MODE} to {SIZE[0]}x{SIZE[1]} at {HFOV_DEG:g}°: times as fast as rs.align"


def rows(frames: int, seed: int) -> list[Row]:
    """Return the speed relative to ``rs.align``, and the depth errors of both; not run without the SDK."""
    try:
        from drivers.realsense.sdk import rs
    except ImportError as missing:
        error = DriverMissing(f"pyrealsense2 cannot be imported: {missing}", "pip install 'robot-runtime[realsense]'")
        return [Row("realsense_vs_align", LABEL, None, "x", 1.2, note=error.message)]
    import numpy as np

    from drivers.realsense.software_device import unit_color_from_depth, unit_lens
    from robot_runtime.hal import Intrinsics
    from robot_runtime.hal.lens import Lens
    from robot_runtime.imaging.reproject import Reprojector
    from robot_runtime.imaging.rig import RgbdCalibration
    from tests.benchmarks.runtime.ray_cast_room import Room, color_image, depth_counts

    color_lens, depth_lens = unit_lens("color", MODE), unit_lens("depth", MODE)
    rig = RgbdCalibration(color_lens, depth_lens, unit_color_from_depth(), 0.001, "bench", "simulation")
    room = Room.random(seed)
    color, depth = color_image(room, rig.color), depth_counts(room, rig, *RANGE_M)
    target = Intrinsics.from_hfov(*SIZE, HFOV_DEG)
    reprojector = Reprojector(rig, target, depth_range_m=RANGE_M)
    reprojector.warm_up()
    frameset, align = _frameset(color, depth), rs.align(rs.stream.color)

    with one_thread():
        ours_s, theirs_s = [], []
        for _ in range(ROUNDS):  # alternating, so that both run under the same load
            ours_s.append(_cpu(lambda: reprojector(color, depth)))
            theirs_s.append(_cpu(lambda: align.process(frameset)))
    ratios = sorted(theirs / ours for ours, theirs in zip(ours_s, theirs_s, strict=True))
    seen = reprojector(color, depth)
    truth_m = room.cast(np.zeros(3), Lens.of(target).pixel_rays())
    ours_mm = 1000 * np.abs(seen.depth_m - truth_m)[~seen.holes]
    aligned = np.array(align.process(frameset).get_depth_frame().get_data(), np.uint16)
    theirs_mm = _errors_mm(aligned, room.cast(np.zeros(3), rig.color.pixel_rays()))
    return [
        Row(
            "realsense_vs_align",
            LABEL,
            statistics.median(theirs_s) / statistics.median(ours_s),
            "x",
            1.2,
            low=ratios[len(ratios) // 10],
            high=ratios[-1 - len(ratios) // 10],
            note=f"ours, color included: {1000 * statistics.median(ours_s):.1f} ms; rs.align, depth alone: "
            f"{1000 * statistics.median(theirs_s):.1f} ms; CPU time of all threads",
        ),
        Row(
            "realsense_depth_p95_mm",
            "the same pair: error of depth, 95th percentile",
            float(np.percentile(ours_mm, 95)),
            "mm",
            float(np.percentile(theirs_mm, 95)),
            "<=",
            rival="rs.align, in its own pixels",
            rival_value=float(np.percentile(theirs_mm, 95)),
            note=f"against ray casting; medians {np.median(ours_mm):.2f} and {np.median(theirs_mm):.2f} mm",
        ),
    ]


def _cpu(work: Callable[[], object]) -> float:
    before_s = cpu_s(resource.RUSAGE_SELF)
    work()
    return cpu_s(resource.RUSAGE_SELF) - before_s


def _errors_mm(counts: NDArray[np.uint16], truth_m: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    measured = counts > 0
    return np.asarray(np.abs(counts[measured] - 1000 * truth_m[measured]))


def _frameset(color: NDArray[np.uint8], depth: NDArray[np.uint16]) -> Any:
    """Return the pair as a frameset of a pipeline on a software device."""
    from drivers.realsense.sdk import rs
    from drivers.realsense.software_device import SoftwareD435

    device = SoftwareD435(MODE, MODE, 30)
    pipeline, streams = rs.pipeline(device.context), rs.config()
    streams.enable_stream(rs.stream.color, color.shape[1], color.shape[0], rs.format.rgb8, 30)
    streams.enable_stream(rs.stream.depth, depth.shape[1], depth.shape[0], rs.format.z16, 30)
    pipeline.start(streams)
    try:
        for number in range(1, 6):
            device.send(color, depth, 33.3 * number, number)
            frameset = pipeline.poll_for_frames()
            if frameset.size() == 2:
                frameset.keep()
                return frameset
    finally:
        pipeline.stop()
    raise AssertionError("the SDK paired nothing")
