"""Printable sheets of tags in true size, with a ruler that reveals scaling by the printer."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from robot_runtime.common.creating import creating
from robot_runtime.errors import ConfigError
from robot_runtime.scenes.tag_map import CELLS, tag_image

PAGES_M = {"A4": (0.210, 0.297), "A3": (0.297, 0.420), "A2": (0.420, 0.594)}
MARGIN_M = 0.004
RULER_M = 0.1
FOOT_M = 0.035
"""Space below the tag for the ruler and its caption."""

TEXT_M = 0.003
INCH_M = 0.0254


def write_sheets(path: Path, ids: Sequence[int], size_m: float) -> str:
    """Write a PDF of vector graphics with one tag per page, and return the paper size that it needs.

    Raises:
        ConfigError: no paper is large enough.
    """
    sheet_m = size_m * (CELLS + 2) / CELLS
    fitting = [
        name
        for name, (width_m, height_m) in PAGES_M.items()
        if sheet_m + 2 * MARGIN_M <= width_m and sheet_m + FOOT_M + 2 * MARGIN_M <= height_m
    ]
    if not fitting:
        raise ConfigError(f"a tag of {size_m:g} m fits no paper up to A2", "print 0.32 m or less, or have it printed")
    with creating(path) as draft, PdfPages(draft) as pdf:
        for tag_id in ids:
            pdf.savefig(page(tag_id, size_m, fitting[0]))
    return fitting[0]


def page(tag_id: int, size_m: float, paper: str) -> Figure:
    """Return one sheet in true size: the tag, a cutting line, the ruler."""
    width_m, height_m = PAGES_M[paper]
    cell_m = size_m / CELLS
    sheet_m = cell_m * (CELLS + 2)
    left_m, top_m = (width_m - sheet_m) / 2, height_m - MARGIN_M
    figure = Figure(figsize=(width_m / INCH_M, height_m / INCH_M))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width_m), ylim=(0, height_m))
    axes.set_axis_off()
    for row, cells in enumerate(tag_image(tag_id)):
        for first, last in _black_runs(cells.tolist()):
            corner = (left_m + first * cell_m, top_m - (row + 1) * cell_m)
            axes.add_patch(Rectangle(corner, (last - first) * cell_m, cell_m, color="black", linewidth=0.2))
    axes.add_patch(Rectangle((left_m, top_m - sheet_m), sheet_m, sheet_m, fill=False, color="0.8", linewidth=0.3))
    _add_ruler(axes, (width_m - RULER_M) / 2, top_m - sheet_m - 0.012)
    axes.text(
        width_m / 2,
        top_m - sheet_m - 0.020,
        f"tag36h11 id {tag_id} · black square {1000 * size_m:g} mm · printed true if the line is 100 mm long",
        fontsize=TEXT_M / INCH_M * 72,
        ha="center",
        va="center",
    )
    return figure


def _black_runs(cells: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last column of black runs in a row; drawn in one piece, they show no seams."""
    column = 0
    for value, run in itertools.groupby(cells):
        length = len(list(run))
        if not value:
            yield column, column + length
        column += length


def _add_ruler(axes: Axes, left_m: float, y_m: float) -> None:
    axes.plot((left_m, left_m + RULER_M), (y_m, y_m), color="black", linewidth=0.5)
    for tick in range(11):
        x_m = left_m + tick * RULER_M / 10
        axes.plot((x_m, x_m), (y_m, y_m + (0.004 if tick % 5 == 0 else 0.002)), color="black", linewidth=0.5)
