"""Panels of instruction following: the instruction, and the reference path with its alignment to the robot's path."""

import math
from functools import cached_property

from markupsafe import Markup
from typing_extensions import override

from robot_runtime.scoring.report.map_drawing import circle, polyline, segments
from robot_runtime.scoring.report.panels import Layer, LegendEntry, ReportPanels
from robot_runtime.task_kinds.vln.kind import Route
from robot_runtime.task_kinds.vln.measures import Point, alignment, reference_of

_MOST_NODES = 60
"""Nodes of a reference path that are drawn; of a denser path, only the line is drawn."""


class RoutePanels(ReportPanels):
    """Instruction, reference path and alignment."""

    @cached_property
    def reference(self) -> tuple[Point, ...]:
        """Points (x, y in map) of the path that the robot's is compared with; empty if there is none."""
        return tuple((point[0], point[1]) for point in reference_of(self.data.header.episode, self.data.rules)[0])

    @cached_property
    def pairs(self) -> tuple[tuple[Point, Point], ...]:
        """Points of reference and path that DTW aligns."""
        return tuple(alignment(self.data.header.episode, self.data.poses, self.data.rules))

    @override
    def statements(self) -> Markup:
        instruction = Route.of(self.data.header.episode).instruction
        if instruction is None:
            return Markup("")
        return Markup('<p class="says"><span class="small muted">instruction</span>{}</p>').format(instruction.text)

    @override
    def route(self, unit: float) -> Layer:
        if not self.reference:
            return super().route(unit)
        pairs = [segments("pair", pair, tip=f"aligned, {math.dist(*pair):.2f} m apart") for pair in self.pairs]
        nodes = self.reference if len(self.reference) <= _MOST_NODES else ()
        circles = [circle("node", x, y, unit * 0.5) for x, y in nodes]
        return Layer(
            Markup("").join([*pairs, polyline("reference", self.reference), *circles]),
            (LegendEntry("reference", "var(--goal)", "stroke"), LegendEntry("aligned by DTW", "var(--room)", "stroke")),
        )
