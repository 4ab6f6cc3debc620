"""Motion, contact, errors and depth of the kinematic simulator."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, Goal
from sim_bridge.robot.driver import SimOptions
from sim_bridge.training.collect import small_task
from sim_bridge.training.kinematic_simulator import Errors, KinematicSimulator, preset_options

EXACT = Errors(SimOptions(), 0.0)


@pytest.fixture
def simulator(room: Scene) -> Iterator[KinematicSimulator]:
    made = KinematicSimulator(room, small_task())
    yield made
    made.close()


def start(
    simulator: KinematicSimulator, x_m: float, y_m: float, yaw_deg: float, errors: Errors = EXACT, seed: int = 0
) -> dict:
    episode = Episode("0", simulator.scene.name, SE2(x_m, y_m, math.radians(yaw_deg)), (Goal(0.0, 0.0),))
    return simulator.reset(episode, errors, np.random.default_rng(seed))


def test_actions_move_as_the_task_says(simulator: KinematicSimulator) -> None:
    start(simulator, -1.0, 0.0, 0.0)
    seen = simulator.step(Action.MOVE_FORWARD)
    assert seen["gps"] == pytest.approx([0.25, 0.0], abs=1e-6)
    seen = simulator.step(Action.TURN_LEFT)
    assert seen["compass"] == pytest.approx([math.radians(30)], abs=1e-6)
    assert seen["pointgoal_with_gps_compass"][0] == pytest.approx(0.75, abs=1e-6)


def test_a_wall_stops_it_where_it_would_touch(simulator: KinematicSimulator) -> None:
    start(simulator, 0.0, -1.2, -90.0)  # the wall's inner face is y = -2
    for _ in range(6):
        seen = simulator.step(Action.MOVE_FORWARD)
    assert seen["gps"][0] == pytest.approx(2.0 - 1.2 - 0.18, abs=0.03)


def test_in_contact_it_leaves_only_away_from_the_wall(simulator: KinematicSimulator) -> None:
    start(simulator, 0.0, -1.2, -90.0)
    for _ in range(4):
        held = simulator.step(Action.MOVE_FORWARD)
    for _ in range(2):
        simulator.step(Action.TURN_LEFT)
    slid = simulator.step(Action.MOVE_FORWARD)
    assert slid["gps"] == pytest.approx(held["gps"], abs=0.01), "60 degrees off: no sliding"
    for _ in range(4):
        simulator.step(Action.TURN_LEFT)
    left = simulator.step(Action.MOVE_FORWARD)
    assert left["gps"][0] == pytest.approx(held["gps"][0] - 0.25, abs=0.01)


def test_errors_are_the_presets_and_repeat_with_the_seed(simulator: KinematicSimulator) -> None:
    errors = Errors(preset_options("sim-noisy"), 1.0)

    def gps(seed: int) -> list[float]:
        start(simulator, -1.0, 0.0, 0.0, errors, seed)
        return [float(simulator.step(action)["gps"][0]) for action in (Action.MOVE_FORWARD, Action.TURN_RIGHT)]

    assert gps(1) == gps(1)
    assert gps(1) != gps(2)
    moved = [gps(seed)[0] for seed in range(60)]
    assert np.mean(moved) == pytest.approx(0.25 / 1.01, abs=0.012)
    assert 0.01 < np.std(moved) < 0.03


def test_depth_has_the_sensors_hole_at_a_wall(simulator: KinematicSimulator) -> None:
    start(simulator, 0.0, -1.78, -90.0, Errors(preset_options("sim-noisy"), 1.0))
    near = start(simulator, 0.0, -1.78, -90.0, Errors(preset_options("sim-noisy"), 1.0))["depth"]
    assert near.shape == (120, 160, 1)
    assert (near[40:80, 60:100] == 0).all()
