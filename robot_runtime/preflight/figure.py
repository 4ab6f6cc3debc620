"""Figure of a preflight: the view that the policy expects from the robot's pose next to the robot's own image."""

import math
from pathlib import Path

import cv2
import numpy as np

from robot_runtime.common.creating import creating
from robot_runtime.common.geometry import optical_axes
from robot_runtime.hal import CameraInfo, Intrinsics, RgbdFrame
from robot_runtime.hal.lens import Lens
from robot_runtime.preflight.observe import StartView
from robot_runtime.tasks.task import TrainingCamera

LINES_M = (1.0, 2.0, 4.0)
"""Distances on the floor, straight ahead, that are marked by a line."""

_GAP_RGB = (225, 225, 225)


def expected_view(frame: RgbdFrame, info: CameraInfo, view: StartView, trained: TrainingCamera) -> RgbdFrame:
    """The training camera's view: rendered by the simulation, else the robot's own frame, reprojected.

    The robot's camera is placed as the floor shows it, or as calibrated where no floor is visible; its points are
    projected into the training camera without interpolation of gaps.

    Returns:
        ``rgb`` and ``depth_m`` of the training camera's size; gray and 0 where the robot's frame has no data.
    """
    from robot_runtime.imaging.raster import SPAN_ROWS, depth_of, draw_surface

    if view.expected is not None:
        return view.expected
    target, own = trained.intrinsics, info.intrinsics
    height_m, tilt_rad = _camera_height_and_tilt(info, view)
    target_axes, own_axes = optical_axes(0.0, trained.tilt_rad), optical_axes(0.0, tilt_rad)
    turn = target_axes.T @ own_axes
    shift = target_axes.T @ np.array([0.0, 0.0, height_m - trained.height_m])
    camera = Lens.of(target).matrix
    rays = np.ascontiguousarray(np.moveaxis(Lens.of(own).pixel_rays() @ (camera @ turn).T, -1, 0), np.float32)
    size = (target.height, target.width)
    inverse, depth_m, holes = np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.bool_)
    near_m, far_m = np.float32(0.05), np.float32(info.depth_max_m)
    draw_surface(
        np.rint(frame.depth_m * 1000).astype(np.uint16),
        rays,
        (camera @ shift).astype(np.float32),
        np.float32(0.001),
        np.float32(0),
        near_m,
        far_m,
        np.float32(math.tan(math.radians(87)) / own.fx),
        np.zeros((2, 3, own.width), np.float32),
        np.zeros((SPAN_ROWS, own.width), np.int32),
        inverse,
    )
    depth_of(inverse, near_m, far_m, depth_m, holes)
    points = (Lens.of(target).pixel_rays() * depth_m[..., None] - shift) @ turn
    pixels = Lens.of(own).project(points).astype(np.float32)
    border = cv2.BORDER_CONSTANT
    rgb = cv2.remap(frame.rgb, pixels[..., 0], pixels[..., 1], cv2.INTER_LINEAR, borderMode=border)
    rgb[holes] = _GAP_RGB
    return RgbdFrame(frame.stamp_ns, np.asarray(rgb, np.uint8), depth_m)


def draw(path: Path, policy: str, robot: str, trained: TrainingCamera, info: CameraInfo, view: StartView) -> None:
    """Write the figure as PNG: color above, depth below, with the horizon and lines on the floor in both."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2)
    height_m, tilt_rad = _camera_height_and_tilt(info, view)
    views = (
        (expected_view(view.frame, info, view, trained), trained.intrinsics, trained.height_m, trained.tilt_rad),
        (view.frame, info.intrinsics, height_m, tilt_rad),
    )
    titles = (f"what {policy} expects here", f"what {robot} sees")
    for column, (title, (frame, pinhole, height, tilt)) in enumerate(zip(titles, views, strict=True)):
        place = f"{height:.2f} m high, tilt {math.degrees(tilt):+.1f}°, {pinhole.hfov_deg:.1f}° wide"
        axes[0, column].set_title(f"{title}\n{place}", fontsize=11)
        axes[0, column].imshow(frame.rgb)
        depth = np.ma.masked_equal(frame.depth_m, 0)
        shown = axes[1, column].imshow(depth, cmap="viridis", vmin=trained.depth_min_m, vmax=trained.depth_max_m)
        for axis in axes[:, column]:
            _draw_lines(axis, pinhole, height, tilt)
    figure.colorbar(shown, ax=axes[1, :], label="depth, m; white: not measured", shrink=0.9)
    figure.supxlabel(
        "dashed: horizon; lines: floor straight ahead at 1, 2 and 4 m; gray: not in the robot's image", fontsize=9
    )
    with creating(path) as draft:
        figure.savefig(draft, dpi=90)


def _camera_height_and_tilt(info: CameraInfo, view: StartView) -> tuple[float, float]:
    if view.floor is not None:
        return view.floor.height_m, view.floor.tilt_rad
    return info.mount.z_m, view.tilt_rad


def _draw_lines(axis: object, pinhole: Intrinsics, height_m: float, tilt_rad: float) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axis, Axes)
    axis.set_axis_off()
    axis.set_xlim(-0.5, pinhole.width - 0.5)
    axis.set_ylim(pinhole.height - 0.5, -0.5)
    for distance_m in (math.inf, *LINES_M):
        below_rad = math.atan2(height_m, distance_m) + tilt_rad
        row = pinhole.cy + pinhole.fy * math.tan(below_rad)
        if 0 <= row < pinhole.height:
            style = "--" if math.isinf(distance_m) else "-"
            axis.axhline(row, color="crimson", linewidth=0.9, linestyle=style)
            if not math.isinf(distance_m):
                axis.text(4, row - 3, f"{distance_m:g} m", color="crimson", fontsize=8)
