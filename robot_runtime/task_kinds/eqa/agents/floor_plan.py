"""Rooms of the site in the start frame, as the sensor ``floor_plan`` shows them."""

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.errors import PolicyError
from robot_runtime.task_kinds.eqa.questions.names import category_name

BEYOND_WALL_M = 0.4
"""Largest distance of a room from things on its walls or in its doors, which belong to it."""

_ANYWHERE = 0.2
"""Share of objects that are expected in any room alike."""

_EAST = np.array([[1e-3, 0.0]], np.float32)
"""Direction without walls."""


@cache
def room_shares() -> Mapping[str, Mapping[str, float]]:
    """Share of a category's objects in each kind of room, all in words (``sim_bridge.training.eqa``)."""
    found: dict[str, dict[str, float]] = config.read_yaml(Path(__file__).with_name("rooms.yaml"))
    return found


@dataclass(frozen=True, eq=False)
class PlanRoom:
    """A room: its id, its name in words (empty: it has none), and its polygon (N, 2), meters in the start frame."""

    id: str
    name: str
    polygon: NDArray[np.float32]

    def depth_m(self, x_m: float, y_m: float) -> float:
        """Distance of a point from the room's border, positive inside."""
        return float(cv2.pointPolygonTest(self.polygon, (x_m, y_m), True))

    @property
    def center(self) -> tuple[float, float]:
        """The mean of the corners."""
        x, y = self.polygon.mean(axis=0).tolist()
        return x, y


@dataclass(frozen=True)
class FloorPlan:
    """The rooms, and the direction of most walls."""

    rooms: tuple[PlanRoom, ...] = ()
    axis_rad: float = field(default=0.0)

    @classmethod
    def read(cls, text: str) -> "FloorPlan":
        """The plan of an observation. Raises ``PolicyError``: it is not what the sensor ``floor_plan`` shows."""
        try:
            rooms = [
                PlanRoom(f"room_{i}", category_name(str(room["name"]), {}), np.array(room["polygon"], np.float32))
                for i, room in enumerate(json.loads(text))
            ]
            sides = np.concatenate([_EAST, *(np.roll(room.polygon, -1, axis=0) - room.polygon for room in rooms)])
        except (ValueError, TypeError, KeyError) as error:
            raise PolicyError(f"the floor plan cannot be read: {error}", "use the sensor 'floor_plan'") from error
        # Walls that meet at right angles have one direction modulo 90 degrees; long ones count more.
        doubled = np.hypot(*sides.T) * np.exp(4j * np.arctan2(sides[:, 1], sides[:, 0]))
        return cls(tuple(rooms), math.remainder(float(np.angle(doubled.sum())) / 4, math.pi / 2))

    def room_at(self, x_m: float, y_m: float) -> tuple[PlanRoom | None, float]:
        """The room that a point is in or next to, and how far inside (negative: outside), meters."""
        found = max(((room.depth_m(x_m, y_m), room) for room in self.rooms), key=lambda item: item[0], default=None)
        if found is None or found[0] < -BEYOND_WALL_M:
            return None, -math.inf
        return found[1], found[0]

    def expected(self, categories: Collection[str]) -> dict[str, float]:
        """The probability that an object of some categories, in words, is in a room, by the room's id.

        It is the share of their objects in rooms of that name (``rooms.yaml``, counted in generated flats), mixed with
        :data:`_ANYWHERE`; an unknown category or name of a room says nothing.
        """
        shares = [known for name, known in room_shares().items() if name in categories]
        names = Counter(room.name for room in self.rooms)
        found = {room.id: sum(known.get(room.name, 0.0) for known in shares) / names[room.name] for room in self.rooms}
        total = sum(found.values())
        sure = 1 - _ANYWHERE if total else 0.0
        return {key: sure * one / (total or 1.0) + (1 - sure) / len(found) for key, one in found.items()}

    def named(self, name: str) -> list[PlanRoom]:
        """The rooms of a name."""
        return [room for room in self.rooms if room.name == name]
