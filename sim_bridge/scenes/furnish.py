"""Furnishing: the steps of ``furniture.yaml`` for each room, and RoboTHOR's twelve categories.

Batra et al. 2020 and the RoboTHOR challenge search for those categories; a flat that lacks one serves neither.
"""

import random
from collections.abc import Mapping

from sim_bridge.scenes.furniture import Goal, Model, Step, catalog, make_model
from sim_bridge.scenes.layout import OPPOSITE
from sim_bridge.scenes.placement import Placed, RoomPlanner

_SEE_OVER_M = 0.95  # the camera does not look down on what stands higher
_INDISPENSABLE = {
    "living_room": {"sofa"},
    "kitchen": {"sink", "stove", "refrigerator"},
    "bedroom": {"bed"},
    "bathroom": {"toilet", "sink"},
    "study": {"desk", "chair"},
}


class Furnisher:
    """Furniture in one flat's style."""

    def __init__(self, style: Mapping[str, str], rng: random.Random) -> None:
        self._style, self._rng = style, rng

    def furnish(self, room: RoomPlanner, with_desk: bool, ceiling_m: float) -> bool:
        """Place what belongs in a room; ``with_desk``: whether the flat's workplace is in it.

        Returns:
            Whether the room has what is indispensable for its category.
        """
        for step in catalog().rooms[room.room.category]:
            wanted = (with_desk or not step.workplace) and room.room.area_m2 >= step.min_area_m2
            if wanted and not (step.unless and room.has(step.unless)) and self._rng.random() <= step.chance:
                self._take(room, step)
        room.from_ceiling(self._model("ceiling_lamp"), ceiling_m)
        return all(map(room.has, _INDISPENSABLE.get(room.room.category, ())))

    def add_goals(self, rooms: list[RoomPlanner]) -> bool:
        """Add what is missing of RoboTHOR's categories, and a few more at random.

        Returns:
            Whether every category found a place.
        """
        for category, goal in catalog().goals.items():
            ordered = [room for name in goal.rooms for room in rooms if room.room.category == name]
            if not any(room.has(category) for room in rooms):
                if not self._place_goal(goal, ordered):
                    return False
            elif self._rng.random() < goal.spare:
                self._place_goal(goal, self._rng.sample(ordered, len(ordered)))
        return True

    def _model(self, name: str) -> Model:
        return make_model(name, self._style, self._rng)

    def _take(self, room: RoomPlanner, step: Step) -> None:
        if step.where == "row":
            room.row([self._model(name) for name in step.piece])
            return
        names = step.piece if step.where != "hung" else self._rng.sample(step.piece, len(step.piece))
        for name in names:
            spot = self._place(room, step, self._model(name))
            if spot is not None:
                self._surround(room, spot)
                return

    def _place(self, room: RoomPlanner, step: Step, model: Model) -> Placed | None:
        if step.where == "middle":
            return room.near_middle(model)
        if step.where == "rug":
            floor = room.room.floor
            return room.rug(model, *floor.center, 0.0 if floor.width > floor.depth else 90.0)
        if step.where == "hung":
            hosts = [item for item in room.placed if item.model.category == step.above and item.side is not None]
            for host in hosts:
                spot = room.hung(model, step.height_m, [host.side] if host.side else [], center=host.along)
                if spot is not None:
                    return spot
            return None if step.above else room.hung(model, step.height_m)
        faced = next((item for item in room.placed if item.model.category == step.facing and item.side), None)
        if faced is not None and faced.side is not None:
            side = OPPOSITE[faced.side]
            spot = room.against_wall(model, [side], center=faced.along) or room.against_wall(model, [side])
            if spot is not None:
                return spot
        return room.against_wall(model, corner=step.where == "corner", front_m=step.front_m)

    def _surround(self, room: RoomPlanner, host: Placed) -> None:
        """Place what stands around and on a piece."""
        design = host.model.design
        for item in design.around:
            if self._rng.random() > item.chance:
                continue
            model, (x, y) = self._model(item.piece), host.point(*(item.at or (0.0, 0.0)))
            if not model.design.solid:
                room.rug(model, x, y, host.yaw_deg)
                continue
            jitter = self._rng.uniform(-8.0, 8.0) if model.category == "chair" else 0.0
            yaw = round((host.yaw_deg + (item.turn_deg or 0.0) + jitter) % 360.0, 1)
            spot = room.stand(model, x, y, yaw, beside=host, spacing_m=item.gap_m)
            if spot is not None:
                self._surround(room, spot)
        for item in design.carries:
            if self._rng.random() <= item.chance:
                room.on(self._model(item.piece), host, item.turn_deg, item.at)

    def _place_goal(self, goal: Goal, rooms: list[RoomPlanner]) -> bool:
        if goal.on_host is not None:
            model = self._model(goal.on_host)
            if any(self._on_some_host(goal, room, model) for room in rooms):
                return True
        if goal.on_floor is not None:
            model, corner = self._model(goal.on_floor), self._rng.random() < 0.6
            if any(room.against_wall(model, corner=corner) for room in rooms):
                return True
        if goal.on_wall is not None:
            model = self._model(goal.on_wall)
            return any(room.hung(model, 1.0) for room in rooms)
        return False

    def _on_some_host(self, goal: Goal, room: RoomPlanner, model: Model) -> bool:
        hosts = [
            item
            for item in room.placed
            if item.model.category in goal.hosts
            and item.on is None
            and any(item.z + s[4] < _SEE_OVER_M or len(s) > 5 for s in item.model.design.supports)
        ]
        hosts.sort(key=lambda item: goal.hosts.index(item.model.category) + 2.5 * self._rng.random())
        return any(room.on(model, host, goal.turn_deg) for host in hosts)
