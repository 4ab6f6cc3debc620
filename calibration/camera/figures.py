"""Figures of a calibration: detections, coverage, residuals."""

from collections.abc import Mapping, Sequence

import cv2
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from calibration.camera.charuco import Corners
from robot_runtime.hal.lens import Lens

Array = NDArray[np.float64]

COLUMNS, ROWS = 8, 6
"""Cells of the image in which coverage is counted."""

ARROW = 50.0
"""Magnification of drawn residuals."""

_GREEN, _RED, _YELLOW, _WHITE, _GRAY = (60, 220, 60), (235, 60, 60), (250, 210, 40), (255, 255, 255), (70, 70, 70)


def board(rgb: NDArray[np.uint8], corners: Corners | None, note: str) -> NDArray[np.uint8]:
    """Draw detected corners: green if the view is used, else yellow with the reason."""
    canvas = rgb.copy()
    if corners is not None:
        for x, y in corners.pixels:
            cv2.circle(canvas, (round(x), round(y)), max(4, rgb.shape[1] // 160), _YELLOW if note else _GREEN, 2)
    return _titled(canvas, note or "taken")


def tags(rgb: NDArray[np.uint8], corners: dict[int, Array], title: str) -> NDArray[np.uint8]:
    """Draw the detected tags."""
    canvas = rgb.copy()
    for tag_id, pixels in corners.items():
        cv2.polylines(canvas, [np.rint(pixels).astype(np.int32)], True, _GREEN, 2)
        x, y = np.rint(pixels.mean(axis=0)).astype(int).tolist()
        cv2.putText(canvas, str(tag_id), (x - 8, y + 6), cv2.FONT_HERSHEY_SIMPLEX, 0.6, _RED, 2)
    return _titled(canvas, title)


def covered(lens: Lens, seen: Sequence[Array]) -> NDArray[np.bool_]:
    """Return the cells of the image that contain a corner, bool (ROWS, COLUMNS)."""
    counts = np.zeros((ROWS, COLUMNS), bool)
    for pixels in seen:
        column = np.clip(pixels[:, 0] / lens.width * COLUMNS, 0, COLUMNS - 1).astype(int)
        row = np.clip(pixels[:, 1] / lens.height * ROWS, 0, ROWS - 1).astype(int)
        counts[row, column] = True
    return counts


def coverage(lens: Lens, seen: Sequence[Array]) -> NDArray[np.uint8]:
    """Draw all corners, and the empty cells in gray."""
    canvas = np.full((lens.height, lens.width, 3), 20, np.uint8)
    cells = covered(lens, seen)
    for row, column in np.argwhere(~cells).tolist():
        low = (round(column * lens.width / COLUMNS), round(row * lens.height / ROWS))
        high = (round((column + 1) * lens.width / COLUMNS) - 2, round((row + 1) * lens.height / ROWS) - 2)
        cv2.rectangle(canvas, low, high, _GRAY, -1)
    for pixels in seen:
        for x, y in pixels:
            cv2.circle(canvas, (round(x), round(y)), max(2, lens.width // 320), _GREEN, -1)
    return _titled(canvas, f"{len(seen)} views, {100 * cells.mean():.0f} % of the image")


def residuals(lens: Lens, seen: Array, predicted: Array) -> NDArray[np.uint8]:
    """Draw the residuals of points, magnified.

    Args:
        lens: lens of the image.
        seen: float64 (N, 2), detected pixels.
        predicted: float64 (N, 2), pixels by the solution.
    """
    canvas = np.full((lens.height, lens.width, 3), 20, np.uint8)
    for at, error in zip(seen, (predicted - seen) * ARROW, strict=True):
        start, end = np.rint(at).astype(int).tolist(), np.rint(at + error).astype(int).tolist()
        cv2.line(canvas, start, end, _YELLOW, 1, cv2.LINE_AA)
    rms = float(np.sqrt(((predicted - seen) ** 2).sum(axis=1).mean()))
    return _titled(canvas, f"residuals x{ARROW:.0f}, rms {rms:.3f} px")


def errors_over_distance(at_m: Array, errors_mm: Mapping[str, Array]) -> NDArray[np.uint8]:
    """Plot signed errors over distance, one color for each name."""
    figure = Figure(figsize=(6.4, 3.6), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, errors in errors_mm.items():
        axes.plot(at_m, errors, "o", markersize=4, label=name)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("distance, m")
    axes.set_ylabel("error, mm")
    axes.legend()
    figure.canvas.draw()
    return np.array(figure.canvas.buffer_rgba(), np.uint8)[..., :3]  # type: ignore[attr-defined]


def _titled(canvas: NDArray[np.uint8], title: str) -> NDArray[np.uint8]:
    cv2.rectangle(canvas, (0, 0), (canvas.shape[1], 26), (0, 0, 0), -1)
    cv2.putText(canvas, title, (8, 19), cv2.FONT_HERSHEY_SIMPLEX, 0.6, _WHITE, 1, cv2.LINE_AA)
    return canvas
