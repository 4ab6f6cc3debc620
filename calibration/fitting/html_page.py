"""A fit as one self-contained web page beside its pictures."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from calibration.fitting import table
from calibration.fitting.fit import RobotFit
from calibration.fitting.plots import write_plots
from calibration.fitting.simulator_options import Setting
from robot_runtime.common.clock import utc_now_iso
from robot_runtime.errors import writing


def write_page(folder: Path, fit: RobotFit, found: list[Setting]) -> None:
    """Write ``fit.html`` and its pictures as PNG. Raises ``RecordingError``: they cannot be written."""
    with writing(folder, "give another --out"):
        pictures = [
            (caption, base64.b64encode((folder / name).read_bytes()).decode())
            for name, caption in write_plots(folder, fit)
        ]
        page = _environment().get_template("fit.html").render(
            created=utc_now_iso(),
            fit=fit,
            settings=found,
            says=table.says,
            rows=table.rows(fit),
            notes=table.notes(fit),
            pictures=pictures,
        )  # fmt: skip
        (folder / "fit.html").write_text(page, encoding="utf-8")


@cache
def _environment() -> Environment:
    # The look is the reports'.
    loader = ChoiceLoader([PackageLoader("calibration.fitting"), PackageLoader("robot_runtime.scoring")])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
