"""What a report shows of ``gatenav``: the gate on the map, and whether it was passed."""

from __future__ import annotations

from collections.abc import Sequence

from gatenav.kind import Gate
from robot_runtime.scoring.report.map_drawing import polyline
from robot_runtime.scoring.report.panels import Criterion, Layer, LegendEntry, ReportPanels
from robot_runtime.scoring.summary import EpisodeScore


class GatePanels(ReportPanels):
    """The gate's line, and the criterion."""

    @classmethod
    def failure(cls, score: EpisodeScore) -> str:
        return "never passed the gate"

    def criteria(self) -> Sequence[Criterion]:
        return (Criterion("passed the gate", bool(self.data.score.metrics.get("success"))),)

    def marks(self, unit: float) -> Layer:
        gate = polyline("goal", Gate.of(self.data.header.episode).posts)
        return Layer(gate, (LegendEntry("gate", "var(--goal)", "stroke"),))
