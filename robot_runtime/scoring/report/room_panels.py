"""Panels of all kinds of tasks whose goal is in rooms: the goal rooms on the map, and the room over time."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby

from markupsafe import Markup
from typing_extensions import override

from robot_runtime.errors import RuntimeFault
from robot_runtime.metrics.measures import in_rooms
from robot_runtime.scenes.scene import Room
from robot_runtime.scoring.report.charts import Chart
from robot_runtime.scoring.report.map_drawing import polygon
from robot_runtime.scoring.report.panels import Layer, LegendEntry, ReportPanels


class RoomPanels(ReportPanels):
    """Panels that mark the goal rooms."""

    @abstractmethod
    def find_rooms(self) -> Sequence[Room]:
        """The goal rooms of the episode. Raises ``RuntimeFault`` if they cannot be resolved."""

    @cached_property
    def goal_rooms(self) -> tuple[Room, ...]:
        """The goal rooms; empty if they cannot be resolved."""
        try:
            return tuple(self.find_rooms())
        except RuntimeFault:
            return ()

    @override
    def marks(self, unit: float) -> Layer:
        if not self.goal_rooms:
            return Layer()
        color = "color-mix(in srgb, var(--goal) 30%, transparent)"
        shapes = Markup("").join(polygon("goal-room", room.polygon) for room in self.goal_rooms)
        return Layer(shapes, (LegendEntry("goal room", color),))

    @override
    def plots(self) -> list[Markup]:
        return [*super().plots(), *([self._room_plot()] if self.goal_rooms else [])]

    def _room_plot(self) -> Markup:
        """The room of the scene that contains the robot's center over time, goal rooms marked."""
        data = self.data
        chart = Chart("room", (0, max(1, len(data.poses))), (0, 1), height=98)
        chart.x_ticks(whole=True, title="step")
        rooms = [next((r for r in data.header.scene.rooms if r.contains(p.x_m, p.y_m)), None) for p in data.poses]
        names = [room.category.replace("_", " ") if room is not None else "no room" for room in rooms]
        steps_of = enumerate(zip(names, in_rooms(data.poses, self.goal_rooms), strict=True))
        for (name, in_goal), run in groupby(steps_of, key=lambda item: item[1]):
            steps = [step for step, _ in run]
            first, end = steps[0], steps[-1] + 1
            when = f"step {first}" if first == end - 1 else f"steps {first} to {end - 1}"
            chart.bar("room-goal" if in_goal else "room-other", first, end, 1.0, f"{name}, {when}")
            left, right = chart.x(first), chart.x(end)
            if right - left > 7 * len(name):
                chart.text((left + right) / 2, chart.top + 15, name)
        return chart.svg()
