"""Self-contained HTML page of a sim-to-real gap: the pictures, and the numbers behind it."""

import base64
from pathlib import Path

from robot_runtime.common.creating import creating
from robot_runtime.scoring.report.rendering import render
from robot_runtime.scoring.sim_to_real.gap import Gap
from robot_runtime.scoring.sim_to_real.plot import draw_panels
from robot_runtime.scoring.sim_to_real.side_by_side import Worlds
from robot_runtime.scoring.sim_to_real.table import rows, sentence
from robot_runtime.scoring.statistics.intervals import CONFIDENCE


def write_page(path: Path, gap: Gap, worlds: Worlds | None = None) -> None:
    """Write the page (HTML), with ``worlds`` side by side where they are given. Raises ``RecordingError``."""
    page = render(
        "gap.html",
        gap=gap,
        pictures=[(alt, base64.b64encode(png).decode()) for alt, png in draw_panels(gap)],
        sentences=[sentence(one) for one in gap.correlations],
        rows=[row for policy in gap.policies for row in rows(policy)],
        worlds=worlds,
        confidence=f"{CONFIDENCE:.0%}",
    )
    with creating(path) as draft:
        draft.write_text(page, encoding="utf-8")
