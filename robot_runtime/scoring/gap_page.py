"""The gap between simulation and robot as one self-contained page: the picture, and every number behind it."""

from __future__ import annotations

import base64
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from robot_runtime.clock import utc_now_iso
from robot_runtime.errors import RecordingError
from robot_runtime.scoring.compare_table import p_text
from robot_runtime.scoring.gap import METRICS, Gap
from robot_runtime.scoring.gap_plot import draw
from robot_runtime.scoring.gap_table import sentence
from robot_runtime.scoring.groups import CONFIDENCE
from robot_runtime.scoring.scorer import SCORER_VERSION
from robot_runtime.scoring.table import COLUMNS, cell


def write_page(path: Path, gap: Gap) -> None:
    """Write the page (HTML). Raises ``RecordingError``: it cannot be written."""
    environment = Environment(
        loader=PackageLoader("robot_runtime.scoring"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page = environment.get_template("gap.html").render(
        gap=gap,
        picture=base64.b64encode(draw(gap)).decode(),
        sentences=[sentence(one) for one in gap.correlations],
        rows=_rows(gap),
        confidence=f"{CONFIDENCE:.0%}",
        created=utc_now_iso(),
        scorer=SCORER_VERSION,
        maps={},
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}", "give another file") from error


def _rows(gap: Gap) -> list[dict[str, str]]:
    rows = []
    for policy in gap.policies:
        for name in METRICS:
            metric = policy.metric(name)
            if metric is None:
                continue
            low, mean, high = (
                cell(name, value) for value in (metric.difference.low, metric.difference.mean, metric.difference.high)
            )
            rows.append(
                {
                    "agent": policy.agent,
                    "metric": " ".join(COLUMNS[name][:2]).strip(),
                    "simulated": cell(name, metric.mean_a),
                    "real": cell(name, metric.mean_b),
                    "difference": mean,
                    "interval": f"[{low}, {high}]",
                    "p": p_text(metric.p_value),
                    "pairs": str(metric.pairs),
                    "differs": "differs" if metric.differs else "",
                }
            )
    return rows
