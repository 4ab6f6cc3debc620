"""RoboTHOR's twelve object categories, each in its usual place.

Batra et al. 2020 and the RoboTHOR challenge search for these; a flat that lacks one is of no use to either.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from sim_bridge.scenes.furnish import workplace
from sim_bridge.scenes.furniture import small
from sim_bridge.scenes.furniture.kit import Model, Surface
from sim_bridge.scenes.placement import RoomPlanner
from sim_bridge.scenes.style import Style, vivid

Maker = Callable[[random.Random], Model]
_SEE_OVER_M = 0.95  # what stands higher than this is not looked down upon by the camera


@dataclass(frozen=True)
class Goal:
    """Where things of one category go; the ways are tried in the order of the fields.

    Attributes:
        rooms: kinds of room, the likeliest first. hosts: categories of furniture that ``on_host`` may stand on.
        yaw_deg: relative to the host; None is any. on_floor: models to stand against a wall. on_wall: one to hang.
        spare: probability that a second one is put somewhere.
    """

    rooms: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    on_host: Maker | None = None
    yaw_deg: float | None = None
    on_floor: tuple[Maker, ...] = ()
    on_wall: Maker | None = None
    spare: float = 0.25


_TOPS = ("table", "counter", "desk", "cabinet", "chest_of_drawers")
_DRY = ("living_room", "kitchen", "bedroom", "study", "hall")

GOALS: dict[str, Goal] = {
    "AlarmClock": Goal(
        ("bedroom", "study", "living_room"),
        ("nightstand", "chest_of_drawers", "desk", "bookshelf", "cabinet"),
        lambda rng: small.alarm_clock(vivid(rng)),
        yaw_deg=0.0,
    ),
    "Apple": Goal(
        ("kitchen", "living_room", "study", "bedroom", "hall"),
        _TOPS,
        lambda rng: small.apple(Surface(rng.choice(("red", "green")))),
    ),
    "BaseballBat": Goal(
        ("bedroom", "study", "hall", "living_room", "kitchen"),
        on_floor=(
            lambda rng: small.baseball_bat(_bat_wood(rng), True),
            lambda rng: small.baseball_bat(_bat_wood(rng), False),
        ),
        spare=0.0,
    ),
    "BasketBall": Goal(("living_room", "bedroom", "study", "hall"), on_floor=(lambda rng: small.basketball(),)),
    "Bowl": Goal(("kitchen", "living_room", "study", "bedroom"), _TOPS, lambda rng: small.bowl(vivid(rng))),
    "GarbageCan": Goal(
        ("kitchen", "bathroom", "study", "living_room", "hall"),
        on_floor=(lambda rng: small.garbage_can(_bin_surface(rng), rng.random() < 0.5),),
        spare=0.5,
    ),
    "HousePlant": Goal(
        ("living_room", "study", "hall", "bedroom"),
        ("cabinet", "table", "chest_of_drawers"),
        lambda rng: small.house_plant(Surface("terracotta"), 0.34, 1),
        on_floor=(lambda rng: small.house_plant(Surface("white"), 0.8, 2),),
    ),
    "Laptop": Goal(
        ("study", "bedroom", "living_room", "kitchen"),
        ("desk", "table", "chest_of_drawers", "cabinet", "bed"),
        lambda rng: small.laptop(Surface(rng.choice(("silver", "gray", "black")))),
        yaw_deg=0.0,
        spare=0.1,
    ),
    "Mug": Goal(("study", "kitchen", "living_room", "bedroom"), _TOPS, lambda rng: small.mug(vivid(rng))),
    "SprayBottle": Goal(
        ("bathroom", "kitchen"), ("sink", "counter", "chest_of_drawers"), lambda rng: small.spray_bottle(vivid(rng))
    ),
    "Television": Goal(("living_room", "bedroom", "study"), on_wall=lambda rng: small.television(0.9, True), spare=0.0),
    "Vase": Goal(
        _DRY,
        ("bookshelf", "fireplace", "cabinet", "chest_of_drawers", "table"),
        lambda rng: small.vase(vivid(rng), rng.randrange(3)),
    ),
}


def goal_objects(rooms: list[RoomPlanner], style: Style) -> list[str]:
    """Add what is missing of the twelve categories, and a few more at random.

    Returns:
        The categories for which there was no place.
    """
    rng = rooms[0].rng
    if not _present(rooms, "desk"):
        any(workplace(room, style) for room in _of(rooms, ("bedroom", "living_room")))
    missing = []
    for category, goal in GOALS.items():
        if not _present(rooms, category) and not _place(goal, rooms, rng):
            missing.append(category)
        elif rng.random() < goal.spare:
            _place(goal, rng.sample(rooms, len(rooms)), rng, any_room=True)
    return missing


def _place(goal: Goal, rooms: list[RoomPlanner], rng: random.Random, *, any_room: bool = False) -> bool:
    candidates = [room for room in rooms if room.room.category in goal.rooms] if any_room else _of(rooms, goal.rooms)
    for room in candidates:
        if goal.on_host is not None and _on_some_host(goal, room, goal.on_host(rng)):
            return True
    for make in goal.on_floor:
        model = make(rng)
        if any(room.against_wall(model, corner=rng.random() < 0.6) is not None for room in candidates):
            return True
    if goal.on_wall is not None:
        model = goal.on_wall(rng)
        return any(room.hung(model, 1.0) is not None for room in candidates)
    return False


def _on_some_host(goal: Goal, room: RoomPlanner, model: Model) -> bool:
    hosts = [
        item
        for item in room.placed
        if item.model.category in goal.hosts
        and item.on is None
        and any(item.z + support.z < _SEE_OVER_M or support.headroom_m < 0.5 for support in item.model.supports)
    ]
    ordered = sorted(hosts, key=lambda item: goal.hosts.index(item.model.category) + 2.5 * room.rng.random())
    return any(room.on(model, host, yaw_deg=goal.yaw_deg) is not None for host in ordered)


def _of(rooms: list[RoomPlanner], categories: tuple[str, ...]) -> list[RoomPlanner]:
    return [room for category in categories for room in rooms if room.room.category == category]


def _present(rooms: list[RoomPlanner], category: str) -> bool:
    return any(item.model.category == category for room in rooms for item in room.placed)


def _bat_wood(rng: random.Random) -> Surface:
    return Surface(rng.choice(("oak", "birch", "walnut")), "wood")


def _bin_surface(rng: random.Random) -> Surface:
    return Surface(rng.choice(("silver", "red", "gray", "white")))
