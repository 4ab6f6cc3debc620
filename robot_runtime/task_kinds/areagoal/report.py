"""Panels of AreaGoal: the goal rooms, in place of goal points."""

from collections.abc import Sequence

from typing_extensions import override

from robot_runtime.scenes.scene import Room
from robot_runtime.scoring.report.panels import Layer
from robot_runtime.scoring.report.room_panels import RoomPanels
from robot_runtime.task_kinds.areagoal import kind as areagoal


class AreaPanels(RoomPanels):
    """Goal rooms on the map and over time."""

    @override
    def subject(self) -> str:
        return self.data.header.episode.category or ""

    @override
    def find_rooms(self) -> Sequence[Room]:
        header = self.data.header
        return areagoal.goal_rooms(header.task, header.scene, header.episode)

    @override
    def goals(self, unit: float) -> Layer:
        return Layer()
