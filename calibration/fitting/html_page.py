"""Report of a fit as a self-contained web page, with its figures."""

from __future__ import annotations

import base64
from pathlib import Path

from calibration.fitting import table
from calibration.fitting.fit import RobotFit
from calibration.fitting.plots import write_plots
from calibration.fitting.simulator_options import Setting
from robot_runtime.errors import writing
from robot_runtime.scoring.report.rendering import render


def write_page(folder: Path, fit: RobotFit, found: list[Setting]) -> None:
    """Write ``fit.html`` and its figures as PNG. Raises ``RecordingError`` if they cannot be written."""
    with writing(folder, "give another --out"):
        pictures = [
            (caption, base64.b64encode((folder / name).read_bytes()).decode())
            for name, caption in write_plots(folder, fit)
        ]
        page = render(
            "fit.html",
            "calibration.fitting",
            fit=fit,
            settings=found,
            says=table.says,
            rows=table.rows(fit),
            notes=table.notes(fit),
            pictures=pictures,
        )
        (folder / "fit.html").write_text(page, encoding="utf-8")
