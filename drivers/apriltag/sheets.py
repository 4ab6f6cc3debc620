"""Tags to print, in true size, with a ruler that shows whether the printer scaled them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from robot_runtime.errors import ConfigError
from robot_runtime.tag_map import CELLS, picture

PAGES_M = {"A4": (0.210, 0.297), "A3": (0.297, 0.420), "A2": (0.420, 0.594)}
MARGIN_M = 0.004
RULER_M = 0.1
FOOT_M = 0.035
"""Below the tag: the ruler and its words."""

_POINTS_PER_M = 72 / 0.0254


def write_sheets(path: Path, ids: Sequence[int], size_m: float) -> str:
    """A PDF with one tag per page, as vectors; the name of the paper that it needs.

    Args:
        size_m: edge of the black square.

    Raises:
        ConfigError: no paper is large enough.
    """
    cell_m = size_m / CELLS
    sheet_m = cell_m * (CELLS + 2)
    fitting = [
        name
        for name, (width_m, height_m) in PAGES_M.items()
        if sheet_m + 2 * MARGIN_M <= width_m and sheet_m + FOOT_M + 2 * MARGIN_M <= height_m
    ]
    if not fitting:
        raise ConfigError(f"a tag of {size_m:g} m fits no paper up to A2", "print 0.32 m or less, or have it printed")
    width_m, height_m = PAGES_M[fitting[0]]
    with PdfPages(path) as pdf:
        for tag_id in ids:
            figure = Figure(figsize=(width_m / 0.0254, height_m / 0.0254))
            axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width_m), ylim=(0, height_m))
            axes.set_axis_off()
            left_m, top_m = (width_m - sheet_m) / 2, height_m - MARGIN_M
            for row, cells in enumerate(picture(tag_id)):
                for column, value in enumerate(cells):
                    if not value:
                        corner = (left_m + column * cell_m, top_m - (row + 1) * cell_m)
                        # A line of its own colour closes the hairlines that viewers draw between neighbours.
                        axes.add_patch(Rectangle(corner, cell_m, cell_m, facecolor="black", edgecolor="none"))
            axes.add_patch(
                Rectangle((left_m, top_m - sheet_m), sheet_m, sheet_m, fill=False, edgecolor="0.8", linewidth=0.3)
            )
            _ruler(axes, (width_m - RULER_M) / 2, top_m - sheet_m - 0.012, tag_id, size_m)
            pdf.savefig(figure)
    return fitting[0]


def _ruler(axes, left_m: float, y_m: float, tag_id: int, size_m: float) -> None:  # type: ignore[no-untyped-def]
    axes.plot((left_m, left_m + RULER_M), (y_m, y_m), color="black", linewidth=0.5)
    for tick in range(11):
        x_m = left_m + tick * RULER_M / 10
        axes.plot((x_m, x_m), (y_m, y_m + (0.004 if tick % 5 == 0 else 0.002)), color="black", linewidth=0.5)
    words = (
        f"tag36h11 id {tag_id} · black square {1000 * size_m:g} mm · the line above is 100 mm long, or print at 100 %"
    )
    axes.text(left_m + RULER_M / 2, y_m - 0.008, words, fontsize=0.003 * _POINTS_PER_M, ha="center", va="center")
