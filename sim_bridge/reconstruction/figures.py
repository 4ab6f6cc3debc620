"""Pictures and pages: a scan over the map, and the changes in a place."""

import base64
import io
from pathlib import Path
from typing import BinaryIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

from robot_runtime.common.creating import creating
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.report.rendering import render
from sim_bridge.reconstruction.change_detection import ChangeReport
from sim_bridge.reconstruction.planar_geometry import moved
from sim_bridge.reconstruction.scan_import import Registration

_SHADES = {Cell.FREE: 1.0, Cell.OCCUPIED: 0.45, Cell.UNKNOWN: 0.8}
_WIDTH_IN = 10.0
_CHANGES = {"moved": ("tab:blue", "moved?"), "gone": ("tab:red", "gone"), "appeared": ("tab:green", "new")}


def draw_registration(path: Path, result: Registration) -> None:
    """Write a PNG: the map in gray, the scan's plan in red."""
    pose, plan = result.best.map_from_scan, result.scan.plan
    placed = moved(plan, pose)
    figure, axes = map_figure(result.occupancy)
    axes.scatter(placed[:, 0], placed[:, 1], s=2, c="tab:red", linewidths=0, label=result.scan.source.name)
    axes.legend(loc="upper right", markerscale=12)
    best = result.best
    axes.set_title(f"{best.inlier_share:.0%} of the map's border explained, to {1000 * best.rms_m:.0f} mm", loc="left")
    with creating(path) as draft:
        figure.savefig(draft, dpi=110)


def draw_changes(target: Path | BinaryIO, scene: Scene, report: ChangeReport) -> None:
    """Write a PNG: the scene's map with the changes, numbered as in the table."""
    figure, axes = map_figure(scene.map)
    for number, change in enumerate(report.changes, 1):
        color, words = _CHANGES[change.kind]
        (x, y, _), (width_m, depth_m, _) = change.center, change.size
        yaw_deg = scene.object(change.object).yaw_deg if change.object is not None else 0.0
        corner = (x - width_m / 2, y - depth_m / 2)
        axes.add_patch(
            Rectangle(corner, width_m, depth_m, angle=yaw_deg, rotation_point="center", fill=False, ec=color, lw=1.8)
        )
        if change.to is not None:
            turned_deg = yaw_deg + (change.turned_deg or 0.0)
            corner = (change.to[0] - width_m / 2, change.to[1] - depth_m / 2)
            axes.add_patch(
                Rectangle(
                    corner, width_m, depth_m, angle=turned_deg, rotation_point="center", fc=color, ec=color, alpha=0.45
                )
            )
            axes.annotate("", change.to, (x, y), arrowprops={"arrowstyle": "->", "color": color, "lw": 1.8})
        label = f"{number} {change.object or words}"
        text = axes.text(x, y + depth_m / 2 + 0.06, label, color=color, ha="center", va="bottom", weight="bold")
        text.set_path_effects([withStroke(linewidth=3, foreground="white")])
    used = {change.kind for change in report.changes}
    handles = [Patch(fc="none", ec=color, label=words) for kind, (color, words) in _CHANGES.items() if kind in used]
    if handles:
        axes.legend(handles=handles, loc="upper right")
    count = "1 change" if len(report.changes) == 1 else f"{len(report.changes)} changes"
    title = f"{report.scene}: {count}, {report.seen_share:.0%} of its free floor seen"
    axes.set_title(title, loc="left")
    figure.savefig(target, dpi=110, format="png", bbox_inches="tight")


def write_changes_page(path: Path, scene: Scene, report: ChangeReport) -> None:
    """Write a self-contained HTML page with the picture and the table."""
    picture = io.BytesIO()
    draw_changes(picture, scene, report)
    page = render(
        "changes.html",
        "sim_bridge.reconstruction",
        report=report,
        picture=base64.b64encode(picture.getvalue()).decode(),
        headings=COLUMNS,
        rows=change_rows(report),
    )
    with creating(path) as draft:
        draft.write_text(page, encoding="utf-8")


COLUMNS = ("", "what", "object", "at x, y", "size in m", "gone", "now")


def change_rows(report: ChangeReport) -> list[tuple[str, ...]]:
    """The table's rows, with a text for each of :data:`COLUMNS`."""
    rows: list[tuple[str, ...]] = []
    for number, change in enumerate(report.changes, 1):
        x, y, _ = change.center
        size = " x ".join(f"{edge:.2f}" for edge in change.size)
        now = ""
        if change.to is not None and change.moved_m is not None and change.turned_deg is not None:
            now = f"{change.to[0]:.2f}, {change.to[1]:.2f}: {change.moved_m:.2f} m"
            now += f", turned {change.turned_deg:.0f}°" if abs(change.turned_deg) >= 5 else ""
        gone = "" if change.kind == "appeared" else f"{change.share:.0%}"
        what = _CHANGES[change.kind][1]
        rows.append((str(number), what, change.object or change.near, f"{x:.2f}, {y:.2f}", size, gone, now))
    return rows


def map_figure(occupancy: OccupancyMap) -> tuple[Figure, Axes]:
    """A figure of a map in meters, and its axes."""
    width_m, depth_m = occupancy.size_m
    figure = Figure(figsize=(_WIDTH_IN, _WIDTH_IN * depth_m / width_m + 1.0), layout="constrained")
    axes = figure.add_subplot()
    shades = np.array([_SHADES[Cell(i)] for i in range(3)])[occupancy.cells]
    x, y = occupancy.origin_x_m, occupancy.origin_y_m
    axes.imshow(shades, "gray", vmin=0, vmax=1, origin="lower", extent=(x, x + width_m, y, y + depth_m))
    axes.set_xlabel("x in map [m]")
    axes.set_ylabel("y in map [m]")
    return figure, axes
