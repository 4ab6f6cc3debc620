"""A flat of which every answer is known: a kitchen and a living room in the south, two bedrooms in the north."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from small_flat import occupancy

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Room, Scene, SceneFile, SceneObject

ROOMS = (
    Room("room_a", "kitchen", ((0, 0), (5, 0), (5, 5), (0, 5))),
    Room("room_b", "living_room", ((5, 0), (10, 0), (10, 5), (5, 5))),
    Room("room_c", "bedroom", ((0, 5), (5, 5), (5, 10), (0, 10))),
    Room("room_d", "bedroom", ((5, 5), (10, 5), (10, 10), (5, 10))),
)

OBJECTS = (
    SceneObject("table_1", "dining_table", (2, 2, 0.4), (1.5, 1, 0.8), room="room_a", color="brown"),
    SceneObject("apple_1", "Apple", (2, 2, 0.84), (0.08, 0.08, 0.08), room="room_a", color="red"),
    SceneObject("lamp_1", "lamp", (2, 2, 2.4), (0.4, 0.4, 0.2), room="room_a", color="white"),
    SceneObject("chair_1", "chair", (2, 1, 0.45), (0.5, 0.5, 0.9), room="room_a", color="black"),
    SceneObject("chair_2", "armchair", (2, 3, 0.45), (0.5, 0.5, 0.9), room="room_a", color="green"),
    SceneObject("refrigerator_1", "refrigerator", (4.5, 4.5, 0.9), (0.7, 0.7, 1.8), room="room_a", color="white"),
    SceneObject("sofa_1", "sofa", (7, 1, 0.4), (2, 0.9, 0.8), room="room_b", color="gray"),
    SceneObject("tv_stand_1", "tv_stand", (7, 4.5, 0.3), (1.4, 0.4, 0.6), room="room_b", color="black"),
    SceneObject("television_1", "Television", (7, 4.5, 0.95), (1.2, 0.1, 0.7), room="room_b", color="black"),
    SceneObject("lamp_2", "lamp", (9.5, 0.3, 0.8), (0.4, 0.4, 1.6), room="room_b", color="white"),
    SceneObject("bed_1", "bed", (2, 8, 0.3), (1.6, 2, 0.6), room="room_c", color="blue"),
    SceneObject("bed_2", "bed", (8, 8, 0.3), (1.6, 2, 0.6), room="room_d", color="red"),
    SceneObject("wardrobe_1", "wardrobe", (9.5, 6, 1), (0.6, 1, 2), room="room_d"),
)

ANSWERS = {
    "What room is the table located in?": "kitchen",
    "What room is the apple located in?": "kitchen",
    "What room is the refrigerator located in?": "kitchen",
    "What room is the sofa located in?": "living room",
    "What room is the tv stand located in?": "living room",
    "What room is the television located in?": "living room",
    "What room is the wardrobe located in?": "bedroom",
    "What color is the table?": "brown",
    "What color is the apple?": "red",
    "What color is the refrigerator?": "white",
    "What color is the sofa?": "gray",
    "What color is the tv stand?": "black",
    "What color is the television?": "black",
    "What color is the table in the kitchen?": "brown",
    "What color is the apple in the kitchen?": "red",
    "What color is the refrigerator in the kitchen?": "white",
    "What color is the sofa in the living room?": "gray",
    "What color is the tv stand in the living room?": "black",
    "What color is the television in the living room?": "black",
    "What is on the table in the kitchen?": "apple",
    "What is on the tv stand in the living room?": "television",
    "What is above the apple in the kitchen?": "lamp",
    "What is below the apple in the kitchen?": "table",
    "What is below the television in the living room?": "tv stand",
    "How many tables are in the kitchen?": "1",
    "How many apples are in the kitchen?": "1",
    "How many lamps are in the kitchen?": "1",
    "How many chairs are in the kitchen?": "2",
    "How many refrigerators are in the kitchen?": "1",
    "How many sofas are in the living room?": "1",
    "How many tv stands are in the living room?": "1",
    "How many televisions are in the living room?": "1",
    "How many lamps are in the living room?": "1",
    "How many kitchens are in the house?": "1",
    "How many living rooms are in the house?": "1",
    "How many bedrooms are in the house?": "2",
}
"""Every question of the templates that leave no choice, by the rules ``few_scenes``."""

CLOSER = {
    ("sofa", "lamp", "television"): False,  # 1.3 m and 3.0 m: no clear difference
    ("television", "tv stand", "sofa"): True,  # 0 and 3.0 m
    ("tv stand", "television", "sofa"): True,  # 0 and 2.85 m
    ("television", "tv stand", "lamp"): True,
    ("tv stand", "television", "lamp"): True,
    ("lamp", "sofa", "tv stand"): True,  # 1.3 m and hypot(1.6, 3.8) m
    ("lamp", "sofa", "television"): True,
    ("refrigerator", "table", "apple"): False,
}
"""Whether "is A closer to B than to C" is asked, by the paper's gap of 2 m."""


def flat(name: str = "question_flat", view_points: bool = True, **changes: object) -> Scene:
    """The flat, its SceneFile's fields replaced by ``changes``. Every object has a view point, if any has."""
    file = replace(SceneFile(schema=1, name=name, rooms=ROOMS, objects=OBJECTS), **changes)  # type: ignore[arg-type]
    standing = [item for item in file.objects if item.center[2] - item.size[2] / 2 < 0.9]
    blocks = [
        (
            item.center[0] - item.size[0] / 2,
            item.center[1] - item.size[1] / 2,
            item.center[0] + item.size[0] / 2,
            item.center[1] + item.size[1] / 2,
        )
        for item in standing
    ]
    seen = {item.id: (_view(item),) for item in file.objects} if view_points else {}
    return Scene(Path(f"scenes/{name}"), file, occupancy(*blocks, size_m=(10.0, 10.0)), seen, f"digest of {name}")


def _view(item: SceneObject) -> SE2:
    """A pose 1.2 m from the object's middle, towards the middle of the flat, facing it."""
    x_m, y_m, _ = item.center
    away = math.atan2(5 - y_m, 5 - x_m)
    return SE2(x_m + 1.2 * math.cos(away), y_m + 1.2 * math.sin(away), away - math.pi)
