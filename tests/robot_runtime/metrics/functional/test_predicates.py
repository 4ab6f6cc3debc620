"""Predicates on, inside, next to and at: by hand, against brute force, and under rotations of the world."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from robot_runtime.errors import EpisodeError, RecordingError, RuntimeFault
from robot_runtime.metrics.functional import predicates
from robot_runtime.metrics.functional.boxes import Box
from robot_runtime.metrics.functional.predicates import Arrangement, is_inside, is_next_to, is_on
from robot_runtime.scenes.scene import Room
from robot_runtime.tasks.goal_program import Program

TABLE = Box.upright((0, 0, 0.35), (1.2, 0.8, 0.7))
MUG = Box.upright((0.3, 0.1, 0.75), (0.08, 0.08, 0.1))
ROOMS = (
    Room("kitchen_1", "kitchen", ((-2.0, -2.0), (2.0, -2.0), (2.0, 2.0), (-2.0, 2.0))),
    Room("hall_1", "hall", ((2.0, -2.0), (4.0, -2.0), (4.0, 2.0), (2.0, 2.0))),
)


def moved(box: Box, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Box:
    return replace(box, center=box.center + np.array([x, y, z]))


def turned(box: Box, by: Rotation, about: tuple[float, float, float] = (0, 0, 0)) -> Box:
    center = by.apply(box.center - about) + about
    return Box(center, box.size, by.as_matrix() @ box.rotation)


quaternions = st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.1)
coordinates = st.floats(-1.5, 1.5)
sizes = st.floats(0.05, 1.5)


@st.composite
def boxes(draw: Any) -> Box:
    center = [draw(coordinates) for _ in range(3)]
    size = [draw(sizes) for _ in range(3)]
    return Box(np.array(center), np.array(size), Rotation.from_quat(draw(quaternions)).as_matrix())


# --- on -------------------------------------------------------------------------------------------------------------


def test_a_mug_on_a_table() -> None:
    assert predicates.vertical_gap_m(MUG, TABLE) == pytest.approx(0, abs=1e-9)
    assert is_on(MUG, TABLE)
    assert not is_on(TABLE, MUG)


@pytest.mark.parametrize(
    ("x", "z", "on"),
    [
        (0.0, 0.029, True),  # hovers by less than the gap
        (0.0, 0.031, False),
        (0.0, -0.029, True),  # sunk in
        (0.0, -0.031, False),
        (0.299, 0.0, True),  # its middle still over the table's edge at 0.6
        (0.301, 0.0, False),
    ],
)
def test_the_limits_of_on(x: float, z: float, on: bool) -> None:
    assert is_on(moved(MUG, x, 0.0, z), TABLE) is on


def test_the_gap_is_an_argument() -> None:
    assert is_on(moved(MUG, z=0.1), TABLE, gap_m=0.11)
    assert not is_on(moved(MUG, z=0.01), TABLE, gap_m=0.005)


def test_under_and_beside_are_not_on() -> None:
    assert not is_on(moved(MUG, z=-0.8), TABLE)
    assert not is_on(moved(MUG, x=0.34), TABLE), "it stands beside the edge"
    assert predicates.vertical_gap_m(moved(MUG, x=5.0), TABLE) == math.inf


def test_a_book_that_leans_rests_on_its_edge() -> None:
    """0.3 m long, lifted by 30 degrees: its lowest edge is at its middle's height less 0.075 and half its thickness."""
    flat = Box.upright((0, 0, 0), (0.3, 0.2, 0.02))
    book = turned(flat, Rotation.from_euler("y", 30, degrees=True))
    low = 0.15 * math.sin(math.radians(30)) + 0.01 * math.cos(math.radians(30))
    assert is_on(moved(book, z=0.7 + low), TABLE)
    assert predicates.vertical_gap_m(moved(book, z=0.7 + low + 0.01), TABLE) == pytest.approx(0.01)


def test_on_a_sloping_board() -> None:
    board = turned(Box.upright((0, 0, 0), (1.0, 0.5, 0.02)), Rotation.from_euler("y", 20, degrees=True))
    block = turned(Box.upright((0, 0, 0.06), (0.1, 0.1, 0.1)), Rotation.from_euler("y", 20, degrees=True))
    assert is_on(block, board)


@given(boxes(), boxes(), st.floats(-0.5, 0.5))
@settings(max_examples=60, deadline=None)
def test_the_gap_is_how_far_it_can_fall(a: Box, b: Box, up_m: float) -> None:
    gap_m = predicates.vertical_gap_m(a, b)
    lifted_m = predicates.vertical_gap_m(moved(a, z=up_m), b)
    assert lifted_m == pytest.approx(gap_m + up_m, abs=1e-6)
    if math.isfinite(gap_m):
        assert predicates.distance_m(moved(a, z=-gap_m), b) == pytest.approx(0, abs=1e-5)
        assert predicates.distance_m(moved(a, z=-gap_m + 0.1), b) > 1e-4 or gap_m < 0


# --- inside ---------------------------------------------------------------------------------------------------------


def test_inside_is_a_share_of_the_volume() -> None:
    bowl = Box.upright((0, 0, 0.1), (0.3, 0.3, 0.2))
    apple = Box.upright((0, 0, 0.2), (0.1, 0.1, 0.1))
    assert is_inside(apple, bowl), "exactly half of it"
    assert not is_inside(moved(apple, z=0.001), bowl)
    assert is_inside(moved(apple, z=0.02), bowl, min_fraction=0.25)
    assert not is_inside(bowl, apple)


# --- next to --------------------------------------------------------------------------------------------------------


def test_next_to() -> None:
    chair = Box.upright((1.0, 0, 0.4), (0.5, 0.5, 0.8))
    assert predicates.distance_m(chair, TABLE) == pytest.approx(0.15)
    assert is_next_to(chair, TABLE)
    assert is_next_to(TABLE, chair)
    assert not is_next_to(chair, TABLE, within_m=0.14)
    assert not is_next_to(MUG, TABLE), "it is on it"
    assert not is_next_to(Box.upright((0, 0, 0.3), (0.1, 0.1, 0.1)), TABLE), "it is in it"


def test_distance_of_corners() -> None:
    a = Box.between((0, 0, 0), (1, 1, 1))
    assert predicates.distance_m(a, Box.between((2, 3, 4), (5, 5, 5))) == pytest.approx(math.sqrt(1 + 4 + 9))
    assert predicates.distance_m(a, Box.between((0.5, 0.5, 0.5), (2, 2, 2))) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
@given(boxes(), boxes())
@settings(max_examples=40, deadline=None)
def test_distance_is_the_least_of_all(a: Box, b: Box) -> None:
    """Against a general solver from several starts, which can only find distances as large or larger."""

    def apart(p: np.ndarray) -> float:
        u = a.center + a.rotation @ (p[:3] * a.size / 2)
        v = b.center + b.rotation @ (p[3:] * b.size / 2)
        return float(((u - v) ** 2).sum())

    starts = [
        np.zeros(6),
        *(0.9 * np.array(s) for s in itertools.islice(itertools.product((-1, 1), repeat=6), 0, 64, 13)),
    ]
    found = min(minimize(apart, s, bounds=[(-1, 1)] * 6, method="L-BFGS-B").fun for s in starts)
    ours = predicates.distance_m(a, b)
    assert ours == pytest.approx(math.sqrt(found), abs=2e-4)
    assert predicates.distance_m(b, a) == pytest.approx(ours, abs=1e-6)


@given(boxes(), boxes(), st.floats(-math.pi, math.pi), coordinates, coordinates)
@settings(max_examples=40, deadline=None)
def test_turning_and_moving_the_world_changes_nothing(a: Box, b: Box, yaw: float, x: float, y: float) -> None:
    by = Rotation.from_euler("z", yaw)
    a2, b2 = (moved(turned(box, by), x, y) for box in (a, b))
    assert predicates.distance_m(a2, b2) == pytest.approx(predicates.distance_m(a, b), abs=1e-6)
    gap_m, gap2_m = predicates.vertical_gap_m(a, b), predicates.vertical_gap_m(a2, b2)
    # At the very edge of what is under it, rounding decides.
    assert gap2_m == pytest.approx(gap_m, abs=1e-5) or math.inf in (gap_m, gap2_m)


# --- programs -------------------------------------------------------------------------------------------------------


def arrangement(**changes: Any) -> Arrangement:
    """Two mugs, of which one is on the table, an apple in a bowl, a book that is turned by 30 degrees."""
    book = Rotation.from_euler("z", 30, degrees=True)
    things = {
        "table": ("Table", TABLE),
        "mug_1": ("Mug", MUG),
        "mug_2": ("Mug", Box.upright((3.0, 0, 0.05), (0.08, 0.08, 0.1))),
        "bowl": ("Bowl", Box.upright((1, 1, 0.1), (0.3, 0.3, 0.2))),
        "apple": ("Apple", Box.upright((1, 1, 0.1), (0.1, 0.1, 0.1))),
        "book": ("Book", turned(Box.upright((0, -1.5, 0.1), (0.3, 0.2, 0.02)), book, (0, -1.5, 0.1))),
    }
    x, y, z, w = book.as_quat()
    values: dict[str, Any] = {
        "boxes": {name: box for name, (_, box) in things.items()},
        "categories": {name: category for name, (category, _) in things.items()},
        "quaternions": {"book": (w, x, y, z)},
        "rooms": ROOMS,
    }
    return Arrangement(**(values | changes))


def verdict(target: dict[str, Any], world: Arrangement | None = None) -> bool:
    (expression,) = Program((target,)).expressions()
    return predicates.holds(expression, world or arrangement())


POSE = {"position": [0.02, -1.5, 0.1], "yaw_deg": 40}


@pytest.mark.parametrize(
    ("target", "holds"),
    [
        ({"subject": "mug_1", "on": "table"}, True),
        ({"subject": "mug_2", "on": "table"}, False),
        ({"subject": {"every": "Mug"}, "on": "table"}, False),
        ({"subject": {"some": "Mug"}, "on": {"some": "Table"}}, True),
        ({"subject": {"at_least": 2, "of": "Mug"}, "on": "table"}, False),
        ({"subject": {"at_least": 1, "at_most": 1, "of": "Mug"}, "on": "table"}, True),
        ({"subject": {"at_most": 0, "of": "Mug"}, "on": "table"}, False),
        ({"subject": {"every": "Apple"}, "inside": {"some": "Bowl"}}, True),
        ({"subject": "apple", "inside": "bowl", "min_fraction": 1}, True),
        ({"subject": "bowl", "next_to": "table"}, False),
        ({"subject": "bowl", "next_to": "table", "within_m": 0.6}, True),
        ({"not": {"subject": "mug_2", "on": "table"}}, True),
        ({"all": [{"subject": "mug_1", "on": "table"}, {"subject": "mug_2", "on": "table"}]}, False),
        ({"any": [{"subject": "mug_1", "on": "table"}, {"subject": "mug_2", "on": "table"}]}, True),
        ({"count": [{"subject": "mug_1", "on": "table"}, {"subject": "mug_2", "on": "table"}], "at_most": 1}, True),
        ({"count": [{"subject": "mug_1", "on": "table"}, {"subject": "mug_2", "on": "table"}], "at_least": 2}, False),
        ({"subject": "mug_1", "at": {"room": "kitchen_1"}}, True),
        ({"subject": "mug_2", "at": {"room": "kitchen"}}, False),
        ({"subject": "mug_2", "at": {"room": "hall"}}, True),
        ({"subject": "mug_2", "at": {"region": [[2.5, -1], [3.5, -1], [3.5, 1], [2.5, 1]]}}, True),
        ({"subject": "mug_1", "at": {"region": [[2.5, -1], [3.5, -1], [3.5, 1]]}}, False),
        ({"subject": "mug_2", "at": {"center": [3, 0, 0], "size": [1, 1, 0.1], "yaw_deg": 45}}, True),
        ({"subject": "mug_2", "at": {"center": [3, 0, 0], "size": [1, 1, 0.1]}, "min_fraction": 0.51}, False),
        ({"subject": "book", "at": POSE, "within_m": 0.02}, True),
        ({"subject": "book", "at": POSE, "within_m": 0.019}, False),
        ({"subject": "book", "at": POSE, "within_deg": 10.1}, True),
        ({"subject": "book", "at": POSE, "within_deg": 9.9}, False),
        ({"subject": "book", "at": POSE, "min_iou": 0.5}, True),
        ({"subject": "book", "at": POSE, "min_iou": 0.95}, False),
    ],
)
def test_targets(target: dict[str, Any], holds: bool) -> None:
    assert verdict(target) is holds


def test_what_is_carried_is_nowhere() -> None:
    boxes_left = {name: box for name, box in arrangement().boxes.items() if name != "mug_1"}
    world = arrangement(boxes=boxes_left, held=frozenset({"mug_1"}))
    assert not verdict({"subject": "mug_1", "on": "table"}, world)
    assert not verdict({"subject": "mug_1", "at": {"room": "kitchen"}}, world)
    assert not verdict({"subject": "bowl", "next_to": "mug_1", "within_m": 9}, world)
    assert verdict({"not": {"subject": "mug_1", "on": "table"}}, world)


@pytest.mark.parametrize(
    ("target", "error", "part"),
    [
        ({"subject": "ghost", "on": "table"}, EpisodeError, "'ghost'"),
        ({"subject": "mug_1", "on": "ghost"}, EpisodeError, "'ghost'"),
        ({"subject": {"every": "Ghost"}, "on": "table"}, EpisodeError, "'Ghost'"),
        ({"subject": "mug_1", "at": {"room": "attic"}}, EpisodeError, "'attic'"),
        ({"subject": "table", "on": {"every": "Table"}}, EpisodeError, "itself"),
        ({"subject": "mug_1", "at": POSE, "within_deg": 5}, RecordingError, "orientation of object 'mug_1'"),
    ],
)
def test_unknown_things_are_errors(target: dict[str, Any], error: type[RuntimeFault], part: str) -> None:
    with raises_naming(error, part):
        verdict(target)


def test_an_object_without_a_pose_is_an_error() -> None:
    world = arrangement(boxes={"table": TABLE})
    with raises_naming(RecordingError, "pose of object 'mug_1'"):
        verdict({"subject": "mug_1", "on": "table"}, world)
