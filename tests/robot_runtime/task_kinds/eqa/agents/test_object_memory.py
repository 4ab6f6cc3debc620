"""Objects from semantic pixels with depth: places, sizes, colors, and what belongs together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robot_runtime.common.geometry import SE2
from robot_runtime.task_kinds.eqa.agents.object_memory import (
    ColorNames,
    ObjectMemory,
    color_names,
    histogram,
    packed,
    unpacked,
)
from robot_runtime.tasks.task import TrainingCamera

CAMERA = TrainingCamera(100, 100, 90.0, 1.0, 0.1, 10.0, depth_normalized=True)
RED = (140, 31, 29)


def look(memory: ObjectMemory, step: int, pose: SE2, *patches: tuple[slice, slice, float, int]) -> None:
    """Show upright patches (rows, columns, depth, category), red, in front of nothing."""
    depth = np.ones((100, 100, 1), np.float32)
    semantic = np.full((100, 100, 1), -1, np.int32)
    for rows, columns, depth_m, category in patches:
        depth[rows, columns] = (depth_m - 0.1) / 9.9
        semantic[rows, columns] = category
    memory.update(step, pose, 0.0, np.full((100, 100, 3), RED, np.uint8), depth, semantic)


def test_an_object_is_where_its_pixels_are() -> None:
    memory = ObjectMemory(CAMERA)
    look(memory, 0, SE2(1.0, 2.0, math.pi / 2), (slice(50, 75), slice(25, 75), 2.0, 3))
    (item,) = memory.objects.values()
    # 2 m ahead of a robot that faces +y; a pixel is 4 cm wide there, and the axis is at 49.5.
    assert item.center == pytest.approx((1.0, 4.0, 0.5), abs=0.03)
    box = item.box(0.0)
    assert (box.bottom_m, box.top_m) == pytest.approx((0.0, 1.0), abs=0.05)
    assert {round(x, 1) for x, _ in box.corners} == {0.0, 2.0}
    colors = color_names().probabilities(item.colors, "apple")
    assert max(colors, key=lambda name: colors[name]) == "red"


def test_views_of_one_place_are_one_object_and_views_of_two_are_two() -> None:
    memory = ObjectMemory(CAMERA)
    look(memory, 0, SE2(), (slice(40, 60), slice(40, 60), 2.0, 3))
    look(memory, 1, SE2(0.5, 0, 0), (slice(40, 60), slice(38, 62), 1.5, 3))
    (item,) = memory.objects.values()
    assert (item.number, item.first_step, item.best_step, item.best_pixels) == (1, 0, 1, 480)
    look(memory, 2, SE2(0, 0, math.pi), (slice(40, 60), slice(40, 60), 2.0, 3), (slice(0, 20), slice(0, 20), 2.0, 4))
    assert len(memory.of(3)) == 2
    assert len(memory.of(4)) == 1


def test_two_things_in_one_image_that_do_not_touch_are_two() -> None:
    memory = ObjectMemory(CAMERA)
    look(memory, 0, SE2(), (slice(40, 60), slice(10, 30), 2.0, 3), (slice(40, 60), slice(70, 90), 2.0, 3))
    assert len(memory.of(3)) == 2


@pytest.mark.parametrize("depth_m", [0.1, 10.0])
def test_pixels_without_a_measured_depth_are_no_object(depth_m: float) -> None:
    memory = ObjectMemory(CAMERA)
    look(memory, 0, SE2(), (slice(40, 60), slice(40, 60), depth_m, 3))
    assert memory.objects == {}


def test_packing_is_reversible() -> None:
    cells = np.random.default_rng(0).integers(-5000, 5000, (100, 3))
    np.testing.assert_array_equal(unpacked(packed(cells)), cells)


def test_a_color_that_no_such_object_of_the_flats_has_is_named_where_the_pixels_are_clear() -> None:
    pixels = np.full((2000, 3), 200, np.uint8)
    seen = histogram(pixels)
    names = ColorNames(
        ("blue", "white"),
        bins=np.flatnonzero(seen),
        weights=np.array([[0.0, 6.0]], np.float32),
        bias=np.zeros(2, np.float32),
        categories=("sofa",),
        priors=np.array([[0.0, -7.2]], np.float32),
    )
    assert names.probabilities(seen, "sofa")["white"] > 0.8
    assert names.probabilities(histogram(pixels[:20]), "sofa")["white"] < 0.2
