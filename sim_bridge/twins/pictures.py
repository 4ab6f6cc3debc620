"""Pictures of what was found: a scan over the map, and what has changed in a place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robot_runtime.maps import Cell, OccupancyMap
from sim_bridge.twins.align import Registration

_SHADES = {Cell.FREE: 1.0, Cell.OCCUPIED: 0.25, Cell.UNKNOWN: 0.8}
_WIDTH_IN = 10.0


def draw_registration(path: Path, result: Registration) -> None:
    """Write a PNG: the map in grey, the scan's plan in red."""
    pose, plan = result.best.map_from_scan, result.scan.plan
    c, s = np.cos(pose.yaw_rad), np.sin(pose.yaw_rad)
    placed = plan @ np.array([[c, s], [-s, c]]) + (pose.x_m, pose.y_m)
    figure, axes = map_figure(result.occupancy)
    axes.scatter(placed[:, 0], placed[:, 1], s=0.6, c="tab:red", linewidths=0, alpha=0.5, label=result.scan.source.name)
    axes.legend(loc="upper right", markerscale=12)
    best = result.best
    axes.set_title(f"{best.inlier_share:.0%} of the map's border explained, to {1000 * best.rms_m:.0f} mm", loc="left")
    figure.savefig(path, dpi=110)


def map_figure(occupancy: OccupancyMap) -> tuple[Figure, Axes]:
    """A figure of a map, in metres, and its axes."""
    width_m, depth_m = occupancy.size_m
    figure = Figure(figsize=(_WIDTH_IN, _WIDTH_IN * depth_m / width_m + 1.0), layout="constrained")
    axes = figure.add_subplot()
    shades = np.array([_SHADES[Cell(i)] for i in range(3)])[occupancy.cells]
    x, y = occupancy.origin_x_m, occupancy.origin_y_m
    axes.imshow(shades, "gray", vmin=0, vmax=1, origin="lower", extent=(x, x + width_m, y, y + depth_m))
    axes.set_xlabel("x in map [m]")
    axes.set_ylabel("y in map [m]")
    return figure, axes
