"""Success and metrics of ``gatenav``."""

from __future__ import annotations

import math

from gatenav.kind import Gate
from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.measures import Measures, MetricDefinition, Run
from robot_runtime.metrics.settings import Metrics
from robot_runtime.records import StepRecord


class GateMeasures(Measures):
    """The nearest pass of the gate's middle."""

    defines = (MetricDefinition("gate_miss_m", "gate missed by", "m", 2),)
    _nearest_m = math.inf

    def on_step(self, record: StepRecord) -> None:
        pose, middle = record.referee.pose, Gate.of(self.header.episode).middle
        self._nearest_m = min(self._nearest_m, math.dist((pose.x_m, pose.y_m), middle))

    def holds(self, pose: SE2, distance_m: float) -> bool:
        return self._nearest_m <= self.header.task.settings.margin_m

    def metrics(self, run: Run) -> Metrics:
        return {"gate_miss_m": self._nearest_m}
