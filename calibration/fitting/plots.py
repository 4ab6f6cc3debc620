"""Figures of a fit: ends of actions and models, contacts, camera, depth, likelihood."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from numpy.typing import NDArray

from calibration.fitting.fit import RobotFit
from calibration.fitting.misfit import NAMES
from robot_runtime.robots.action_errors import MOVES, ActionError
from robot_runtime.robots.published_action_errors import published_models
from robot_runtime.scoring.pose_tracks import CONFIDENCE_SIGMAS

Array = NDArray[np.float64]

SHOWN = {"PyRobot LoCoBot ILQR": "tab:orange", "Habitat challenge": "tab:green", "RoboTHOR": "tab:purple"}
"""Published models shown with the fitted one; the others are in the table."""

MEASURED, FITTED = "tab:blue", "black"
DPI = 110


def write_plots(folder: Path, fit: RobotFit) -> list[tuple[str, str]]:
    """Write the figures as PNG. Returns file name and caption of each, in order."""
    ends = "Errors of the ends of actions, one dot each; ellipses contain 95 % of a model's predictions, at two scales."
    gains = "Gain of the fitted model in predicting held-out actions, with 95 % intervals over episodes."
    walls = "Left: ends of forward actions into obstacles. Right: log ratio of sliding to stopping of each."
    floors = "Errors of the camera's described pose by the floor in the logged depth, frame by frame."
    noise = "Temporal noise of depth over distance, from frames of the same view, and holes that come and go."
    drawn: list[tuple[str, str, Callable[[RobotFit], Figure], bool]] = [
        ("actions.png", ends, clouds, True),
        ("likelihood.png", gains, likelihood, fit.validation.nats is not None),
        ("contacts.png", walls, contacts, bool(fit.contact.contacts)),
        ("camera.png", floors, camera, bool(fit.camera.frames)),
        ("depth.png", noise, depth, bool(fit.depth.bins)),
    ]
    written = []
    for name, caption, draw, there in drawn:
        if there:
            figure = draw(fit)
            FigureCanvasAgg(figure)
            figure.savefig(folder / name, dpi=DPI)
            written.append((name, caption))
    return written


def clouds(fit: RobotFit) -> Figure:
    """Plot measured ends and headings of each action, with every model's ellipse and density."""
    size = fit.selection.size
    published = published_models(size.forward_m, size.turn_deg)
    models = {"fitted": fit.model, **{name: published[name] for name in SHOWN}}
    colors = {"fitted": FITTED, **SHOWN}
    figure = Figure(figsize=(11, 9.5), layout="constrained")
    axes = figure.subplots(3, 3, width_ratios=(1, 1, 1.2))
    for row, action in zip(axes, MOVES, strict=True):
        name = action.name.lower()
        errors = np.array([sample.trial.error for sample in fit.selection.of(action)])
        shown = {title: model.actions[name] for title, model in models.items()}
        _ends(row[0], errors, shown, colors, near=True)
        _ends(row[1], errors, shown, colors, near=False)
        _headings(row[2], errors[:, 2], shown, colors)
        row[0].set_ylabel(f"{NAMES[name]}\nerror ahead, mm")
    handles, labels = axes[0, 2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def _ends(axis: Any, errors: Array, models: dict[str, ActionError], colors: dict[str, str], near: bool) -> None:
    ahead_mm, right_mm = 1e3 * errors[:, 0], -1e3 * errors[:, 1]
    axis.plot(right_mm, ahead_mm, "o", color=MEASURED, markersize=3 if near else 1.5, alpha=0.35, markeredgewidth=0)
    reach_mm = 1.15 * max(float(np.abs(ahead_mm).max()), float(np.abs(right_mm).max()), 1.0)
    for title, error in models.items():
        axis.add_patch(_ellipse(error, colors[title]))
        if title == "fitted" or not near:
            deviation_mm = 1e3 * np.sqrt(np.diag(error.matrix)[:2]) * CONFIDENCE_SIGMAS
            reach_mm = max(reach_mm, float((np.abs(1e3 * np.array(error.mean[:2])) + deviation_mm).max()))
    axis.plot(0, 0, "+", color="tab:red", markersize=9)
    axis.set(xlim=(-reach_mm, reach_mm), ylim=(-reach_mm, reach_mm), aspect="equal", xlabel="to the right, mm")
    axis.grid(alpha=0.25)


def _ellipse(error: ActionError, color: str) -> Ellipse:
    turned = np.array([[0.0, -1.0], [1.0, 0.0]])  # drawn to the right and ahead
    values, vectors = np.linalg.eigh(turned @ error.matrix[:2, :2] @ turned.T)
    width, height = (2e3 * CONFIDENCE_SIGMAS * math.sqrt(max(0.0, float(value))) for value in values)
    angle = math.degrees(math.atan2(vectors[1, 0], vectors[0, 0]))
    center = (-1e3 * error.mean[1], 1e3 * error.mean[0])
    return Ellipse(center, width, height, angle=angle, fill=False, color=color, linewidth=1.6)


def _headings(axis: Any, errors_rad: Array, models: dict[str, ActionError], colors: dict[str, str]) -> None:
    errors_deg = np.degrees(errors_rad)
    fitted = models["fitted"]
    middle, wide = math.degrees(fitted.mean[2]), max(0.1, math.degrees(math.sqrt(fitted.covariance[2][2])))
    low, high = min(0.0, middle - 5 * wide), max(0.0, middle + 5 * wide)
    tops, _, _ = axis.hist(
        errors_deg, np.linspace(low, high, 41), density=True, color=MEASURED, alpha=0.35, label="measured"
    )
    grid = np.linspace(low, high, 400)
    for title, error in models.items():
        std = max(0.1, math.degrees(math.sqrt(error.covariance[2][2])))
        density = np.exp(-0.5 * ((grid - math.degrees(error.mean[2])) / std) ** 2) / (std * math.sqrt(2 * math.pi))
        axis.plot(grid, density, color=colors[title], label=title, linewidth=1.6)
    axis.axvline(0, color="tab:red", linewidth=0.8)
    axis.set(xlabel="error of heading, °, left positive", yticks=[], xlim=(low, high))
    axis.set_ylim(0, 1.25 * float(tops.max()))


def likelihood(fit: RobotFit) -> Figure:
    """Plot the gains over the published models."""
    rivals = fit.validation.rivals[::-1]
    figure = Figure(figsize=(8, 0.5 + 0.38 * len(rivals)), layout="constrained")
    axis = figure.subplots()
    for place, rival in enumerate(rivals):
        gain = rival.gain
        color = "tab:blue" if gain.low > 0 else "tab:red" if gain.high < 0 else "tab:gray"
        axis.plot([gain.low, gain.high], [place, place], color=color, linewidth=5, alpha=0.4, solid_capstyle="butt")
        axis.plot(gain.mean, place, "o", color=color)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_xscale("symlog", linthresh=1)
    axis.set_xlim(min(-1.0, *(rival.gain.low for rival in rivals)), None)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_yticks(range(len(rivals)), [rival.name for rival in rivals])
    axis.set_xlabel("gain of the fitted model in log likelihood per held-out action (linear up to 1)")
    axis.grid(alpha=0.25, axis="x")
    return figure


def contacts(fit: RobotFit) -> Figure:
    """Plot the ends of actions into obstacles, and their log ratios."""
    drawn = fit.contact.contacts
    ratios = np.array([contact.log_ratio for contact in drawn])
    ends_mm = 1e3 * np.array([contact.end for contact in drawn])
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    plane, bars = figure.subplots(1, 2)
    # Sides are mirrored so that a robot that slides ends to the right.
    side = np.array([-math.copysign(1.0, contact.wall_rad) for contact in drawn])
    far = float(np.abs(ratios).max()) or 1.0
    dots = plane.scatter(
        -side * ends_mm[:, 1], ends_mm[:, 0], c=ratios, cmap="coolwarm", vmin=-far, vmax=far, s=16, edgecolor="none"
    )
    figure.colorbar(dots, ax=plane, label="log likelihood, sliding over stopping")
    plane.axhline(1e3 * fit.selection.size.forward_m, color="tab:gray", linewidth=0.8, linestyle="--")
    plane.plot(0, 0, "k^", markersize=8)
    way_mm = 1e3 * fit.selection.size.forward_m
    plane.set(xlim=(-0.5 * way_mm, 0.9 * way_mm), ylim=(-0.15 * way_mm, 1.2 * way_mm), aspect="equal")
    plane.set(xlabel="to the side on which the wall is open, mm", ylabel="ahead, mm")
    plane.grid(alpha=0.25)
    bars.hist(ratios, 30, color=MEASURED, alpha=0.6)
    bars.axvline(0, color="black", linewidth=0.8)
    verdict = fit.contact.behaviour or "not known"
    title = f"sum {fit.contact.log_ratio:+.0f}: {verdict}"
    bars.set(xlabel="log likelihood, sliding over stopping", ylabel="contacts", title=title)
    return figure


def camera(fit: RobotFit) -> Figure:
    """Plot the errors of tilt, roll and height of each frame."""
    frames = fit.camera.frames
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    axes = figure.subplots(1, 4)
    panels: list[tuple[str, list[float], Any, float]] = [
        ("tilt, °", [math.degrees(frame.tilt_rad) for frame in frames], fit.camera.tilt_deg, 1.0),
        ("roll, °", [math.degrees(frame.roll_rad) for frame in frames], fit.camera.roll_deg, 1.0),
        ("height, mm", [1e3 * frame.height_m for frame in frames], fit.camera.height_m, 1e3),
    ]
    for axis, (title, values, interval, scale) in zip(axes, panels, strict=False):
        axis.hist(values, 24, color=MEASURED, alpha=0.5)
        axis.axvline(0, color="tab:red", linewidth=0.8)
        if interval is not None:
            axis.axvspan(scale * interval.low, scale * interval.high, color="black", alpha=0.15)
            axis.axvline(scale * interval.mean, color="black")
        axis.set(xlabel=f"{title}, true less described", yticks=[])
    head_deg = [math.degrees(frame.head_tilt_rad) for frame in frames]
    axes[3].plot(head_deg, panels[0][1], "o", color=MEASURED, markersize=3, alpha=0.5)
    axes[3].set(xlabel="head's tilt, °", ylabel="error of the camera's tilt, °")
    axes[3].grid(alpha=0.25)
    return figure


def depth(fit: RobotFit) -> Figure:
    """Plot noise and holes over distance."""
    bins = fit.depth.bins
    depth_m = np.array([each.depth_m for each in bins])
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    noise, holes = figure.subplots(1, 2)
    noise.plot(depth_m, [1e3 * each.sigma_m for each in bins], "o", color=MEASURED, label="measured")
    if fit.depth.sigma is not None:
        grid = np.linspace(0, float(depth_m.max()), 100)
        noise.plot(grid, 1e3 * np.polynomial.polynomial.polyval(grid, fit.depth.sigma), color=FITTED, label="fitted")
    noise.set(xlabel="depth, m", ylabel="standard deviation, mm", xlim=(0, None), ylim=(0, None))
    noise.legend()
    holes.plot(depth_m, [100 * each.holes for each in bins], "o-", color=MEASURED)
    holes.set(xlabel="depth, m", ylabel="lost from one frame to the next, %", xlim=(0, None), ylim=(0, None))
    for axis in (noise, holes):
        axis.grid(alpha=0.25)
    return figure
