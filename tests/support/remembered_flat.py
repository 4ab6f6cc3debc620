"""The flat of ``question_flat`` as an object memory that has seen all of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from question_flat import OBJECTS, ROOMS

from robot_runtime.scenes.scene import SceneObject
from robot_runtime.task_kinds.eqa.agents.object_memory import CELL_M, ObjectMemory, RememberedObject, histogram, packed
from robot_runtime.tasks.task import Category, Task, load_task

Point = tuple[float, float, float]

RGB = {
    "brown": (78, 51, 35),
    "red": (140, 31, 29),
    "white": (178, 177, 172),
    "black": (30, 27, 28),
    "green": (51, 92, 48),
    "gray": (93, 94, 98),
    "blue": (37, 66, 116),
}
"""Middle of the colors of things with that name in the simulator's light."""

NAMES = {"dining_table": "table", "Apple": "apple", "armchair": "chair", "Television": "television"}


def eqa_task() -> Task:
    """``eqa_embodied`` with the flat's categories and one that the flat does not have."""
    names = sorted({NAMES.get(item.category, item.category) for item in OBJECTS} | {"vase"})
    return replace(load_task("eqa_embodied"), categories={name: Category(i, (name,)) for i, name in enumerate(names)})


def floor_plan(**names: str) -> str:
    """The flat's rooms as the sensor shows them from a start at the origin; ``names`` replace those of rooms."""
    return json.dumps([{"name": names.get(r.id, r.category), "polygon": r.polygon} for r in ROOMS])


def remember(memory: ObjectMemory, item: SceneObject, task: Task, pixels: int = 500) -> None:
    """Put an object into the memory as one cluster that fills its box."""
    assert item.yaw_deg == 0
    rgb = np.full((pixels, 3), RGB[item.color or "white"], np.uint8)
    number = len(memory.objects) + 1
    category = task.categories[NAMES.get(item.category, item.category)].id
    memory.objects[number] = RememberedObject(
        number, category, _cells(item.center, item.size), histogram(rgb), number, number, pixels
    )


@cache
def _cells(center: Point, size: Point) -> NDArray[np.int64]:
    spans = [
        np.arange(math.floor((c - s / 2) / CELL_M), math.ceil((c + s / 2) / CELL_M))
        for c, s in zip(center, size, strict=True)
    ]
    cells = np.unique(packed(np.stack(np.meshgrid(*spans, indexing="ij"), axis=-1).reshape(-1, 3)))
    cells.flags.writeable = False
    return cells


def remembered_flat(task: Task, *without: str) -> ObjectMemory:
    """A memory of all of the flat's objects but those with the given ids."""
    memory = ObjectMemory(task.camera)
    for item in OBJECTS:
        if item.id not in without:
            remember(memory, item, task)
    return memory
