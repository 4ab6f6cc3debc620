"""Where the memory agent looks first: in rooms in which such things stand, as far as they are worth the way."""

from __future__ import annotations

import json

import numpy as np
import pytest
from question_flat import ROOMS
from remembered_flat import eqa_task, floor_plan

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.policies.baselines.classical.grid import CAP, Grid
from robot_runtime.policies.baselines.classical.navigation import Navigator
from robot_runtime.policies.baselines.classical.survey import RESOLUTION_M
from robot_runtime.policies.planning.contact_memory import ContactMemory
from robot_runtime.task_kinds.eqa.agents.exploration import Explorer
from robot_runtime.task_kinds.eqa.agents.floor_plan import FloorPlan
from robot_runtime.task_kinds.eqa.agents.reasoning import Reasoner

TASK = eqa_task()
PLAN = FloorPlan.read(floor_plan())
ALIKE = pytest.approx({room.id: 1 / len(ROOMS) for room in PLAN.rooms})


def test_a_bed_is_expected_in_the_bedrooms_alike() -> None:
    expected = Reasoner("What color is the bed?", TASK, PLAN).expected
    kitchen, living_room, first, second = (expected[room.id] for room in PLAN.rooms)
    assert sum(expected.values()) == pytest.approx(1)
    assert first == second > 5 * max(kitchen, living_room)
    assert min(kitchen, living_room) > 0


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What color is the unicorn?", {}),
        ("Where are my keys?", {}),
        ("What color is the bed?", {room.id: "room" for room in ROOMS}),
    ],
)
def test_what_is_not_known_is_expected_anywhere_alike(question: str, names: dict[str, str]) -> None:
    assert Reasoner(question, TASK, FloorPlan.read(floor_plan(**names))).expected == ALIKE


def test_a_site_without_rooms_expects_nothing() -> None:
    assert Reasoner("What color is the bed?", TASK, FloorPlan.read("[]")).expected == {}


@pytest.mark.parametrize(
    ("name", "room", "turn"), [("bed", "bedroom", Action.TURN_LEFT), ("sofa", "living room", Action.TURN_RIGHT)]
)
def test_exploration_begins_with_the_room_in_which_it_is_expected(name: str, room: str, turn: Action) -> None:
    sides = {"bedroom": (3.0, 7.0), "living_room": (-7.0, -3.0)}  # y; the robot faces along x
    rooms = [{"name": key, "polygon": [(-2, a), (2, a), (2, b), (-2, b)]} for key, (a, b) in sides.items()]
    plan, grid = FloorPlan.read(json.dumps(rooms)), Grid(RESOLUTION_M, 8.0)
    grid.known[grid.window(-0.6, -1.0, 0.6, 1.0)] = True  # a passage between walls, open at both ends
    for wall_x_m in (-0.6, 0.6):
        grid.evidence[grid.window(wall_x_m - 0.05, -1.2, wall_x_m + 0.05, 1.2)] = CAP
    explorer = Explorer(TASK, grid, Navigator(TASK, grid, ContactMemory(TASK.magnitudes.forward_m)), plan)
    expected = Reasoner(f"What color is the {name}?", TASK, plan).expected
    assert explorer.next(SE2(), [], expected, []) is turn
    assert explorer.doing == f"goes to the {room}"


def test_walls_are_expected_at_the_borders_of_rooms_that_were_not_seen() -> None:
    grid = Grid(RESOLUTION_M, 2.0)  # smaller than the flat
    grid.known[grid.window(1.9, -1.0, 2.0, 1.0)] = True
    Explorer(TASK, grid, Navigator(TASK, grid, ContactMemory(TASK.magnitudes.forward_m)), PLAN)
    xy = np.array([(5.0, 2.0), (2.5, 5.0), (2.5, 2.5), (7.5, 7.5), (1.95, 0.0)])  # two borders, two rooms, one seen
    assert grid.suspect.ravel()[grid.flat(*xy.T)].tolist() == [True, True, False, False, False]
