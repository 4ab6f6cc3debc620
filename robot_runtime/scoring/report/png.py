"""PNG of an episode: map with trajectory, camera images, distance to the goal."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from robot_runtime.common.creating import creating
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.scoring.report.episode_data import EpisodeData, load_episode_data
from robot_runtime.scoring.report.map_drawing import furniture, map_box, scale_m

INK, MUTED, TRACK, GOAL, LOST, CONTACT = "#1c2430", "#667085", "#2563eb", "#15803d", "#c2410c", "#dc2626"
_WALL, _THING, _LINE = "#56606e", "#c9cfd8", "#dfe3ea"
_SIZE_IN = (12.8, 6.4)
_DPI = 125
_FRAMES = 6


def write_picture(path: Path, out: Path) -> None:
    """Draw the log ``path`` to the PNG ``out``, 1600 x 800 pixels.

    Raises:
        RecordingError: the log has no step, or ``out`` cannot be written.
    """
    score, data = load_episode_data(path)
    if data is None:
        raise RecordingError(f"{path}: there is nothing to draw: {score.reason or 'no step'}", "give a log with steps")
    figure = Figure(figsize=_SIZE_IN, dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(
        3,
        _FRAMES,
        height_ratios=(1.15, 3.2, 0.01),
        left=0.03,
        right=0.98,
        top=0.89,
        bottom=0.03,
        hspace=0.12,
        wspace=0.05,
    )
    figure.text(0.03, 0.945, _title(data), fontsize=15, color=INK, weight="bold", va="center")
    figure.text(0.98, 0.945, _numbers(data), fontsize=12, color=MUTED, va="center", ha="right")
    shown = np.linspace(0, len(data.keyframes) - 1, min(_FRAMES, len(data.keyframes))).round().astype(int)
    for column, index in enumerate(shown):
        frame = data.keyframes[index]
        axes = figure.add_subplot(grid[0, column])
        axes.imshow(frame.rgb)
        axes.set_axis_off()
        axes.text(0.02, 0.04, f"{frame.index} · {frame.label}", transform=axes.transAxes, color="white", fontsize=9)
    lower = grid[1, :].subgridspec(1, 2, width_ratios=(2.4, 1), wspace=0.08)
    _draw_map(figure.add_subplot(lower[0]), data)
    _draw_distance(figure.add_subplot(lower[1]), data)
    with creating(out) as draft:
        figure.savefig(draft, format="png")


def _title(data: EpisodeData) -> str:
    header = data.header
    goal = f": {header.episode.category}" if header.episode.category else ""
    return f"{header.agent or 'no agent'} on {header.robot} in {header.scene.name}, {header.task.name}{goal}"


def _numbers(data: EpisodeData) -> str:
    if not data.score.scorable:
        return data.score.reason
    metrics = data.score.metrics
    word = "success" if metrics["success"] else "failed"
    ratio = f"SPL {metrics['spl']:.3f} · " if metrics["spl"] is not None else ""
    sensed = metrics["collisions"] is not None
    contacts = f"{metrics['collisions']} contacts" if sensed else "contacts not sensed"
    return f"{word} · {ratio}{metrics['steps']} steps · {contacts}"


def _draw_map(axes: Axes, data: EpisodeData) -> None:
    occupancy = data.header.scene.map
    x0, top, width, height = map_box(occupancy)
    axes.imshow(occupancy.to_rgb(), origin="lower", extent=_extent(occupancy), interpolation="nearest")
    for item in furniture(data.header.scene):
        axes.add_patch(Polygon(_footprint(item), facecolor=_THING, edgecolor=_WALL, linewidth=0.8))
    items = {item.id: item for item in data.header.scene.objects}
    for goal in data.header.episode.goals:
        if goal.object_id in items:
            axes.add_patch(
                Polygon(_footprint(items[goal.object_id]), facecolor=GOAL + "40", edgecolor=GOAL, linewidth=1.5)
            )
    if data.header.task.success.target == "goal":
        axes.plot(*_columns(data.targets), "o", markersize=13, markerfacecolor="none", color=GOAL, markeredgewidth=2.2)
    else:
        axes.plot(*_columns(data.targets), ".", markersize=3, color=GOAL, alpha=0.6)
    axes.plot(data.shortest[:, 0], data.shortest[:, 1], linestyle=(0, (1, 2)), color=MUTED, linewidth=1.4)
    axes.plot(*_columns([(p.x_m, p.y_m) for p in data.poses]), color=TRACK, linewidth=2.2)
    radius_m = data.header.task.robot_radius_m
    touched = [data.poses[i].apply(radius_m, 0.0) for i in data.contacts]
    axes.plot(*_columns(touched), "x", color=CONTACT, markersize=8, markeredgewidth=2)
    start, end = data.poses[0], data.poses[-1]
    axes.plot(start.x_m, start.y_m, "o", markersize=10, markerfacecolor="white", color=TRACK, markeredgewidth=2)
    color = {True: GOAL, False: LOST, None: MUTED}[data.succeeded]
    axes.plot(end.x_m, end.y_m, "o", markersize=9, color=color, markeredgecolor="white")
    length_m, foot = scale_m((x0, top, width, height)), -top - height - 0.02 * height
    axes.plot((x0 + 0.02 * width, x0 + 0.02 * width + length_m), (foot, foot), color=INK, linewidth=2.5)
    axes.text(x0 + 0.02 * width + length_m * 1.1, foot, f"{length_m:g} m", color=INK, fontsize=9, va="center")
    axes.set_xlim(x0, x0 + width)
    axes.set_ylim(-top - height - 0.04 * height, -top)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_distance(axes: Axes, data: EpisodeData) -> None:
    distances = np.array(data.distances_m)
    axes.plot(np.where(np.isfinite(distances), distances, np.nan), color=TRACK, linewidth=2)
    if data.header.task.success.rule == "distance":
        radius_m = data.header.task.success.distance_m
        axes.axhline(radius_m, color=GOAL, linestyle="--", linewidth=1.2)
        axes.annotate(
            f"success radius {radius_m:g} m", (0, radius_m), (4, 3), textcoords="offset points", color=GOAL, fontsize=9
        )
    axes.plot(data.contacts, np.zeros(len(data.contacts)), "|", color=CONTACT, markersize=9, markeredgewidth=1.6)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step", color=MUTED)
    axes.set_title("distance to goal, m", fontsize=11, color=MUTED, loc="left")
    axes.tick_params(colors=MUTED)
    axes.grid(axis="y", color=_LINE)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_LINE)
    axes.set_box_aspect(0.8)


def _columns(points: object) -> tuple[np.ndarray, np.ndarray]:
    array = np.asarray(points, np.float64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _extent(occupancy: OccupancyMap) -> tuple[float, float, float, float]:
    width, height = occupancy.size_m
    x0, y0 = occupancy.origin_x_m, occupancy.origin_y_m
    return x0, x0 + width, y0, y0 + height


def _footprint(item: SceneObject) -> list[tuple[float, float]]:
    pose = SE2(item.center[0], item.center[1], float(np.radians(item.yaw_deg)))
    half_x, half_y = item.size[0] / 2, item.size[1] / 2
    return [pose.apply(x, y) for x, y in ((half_x, half_y), (-half_x, half_y), (-half_x, -half_y), (half_x, -half_y))]
