"""The policy's map memory, on images of walls whose place is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from robot_runtime.errors import ConfigError
from robot_runtime.tasks.task import load_task
from sim_bridge.training import mapping
from sim_bridge.training.collect import small_task
from sim_bridge.training.mapping import CELLS, FINE_CELLS, HEIGHT, MAP_NUMBERS, POSE_NUMBERS, RESOLUTION_M, WIDTH

TASK = small_task()
FORWARD, LEFT = 1, 2


@dataclass
class Walker:
    """Feeds images to a memory, from poses in the start frame (x ahead, y left)."""

    memory: mapping.MapMemory
    state: Tensor
    first: bool = True

    def look(self, depth_m: np.ndarray, x_m: float, y_m: float, yaw_rad: float, previous: int = 0) -> tuple:
        camera = TASK.camera
        depth = (depth_m - camera.depth_min_m) / (camera.depth_max_m - camera.depth_min_m)
        fine, coarse, motion, self.state = self.memory(
            torch.tensor(depth, dtype=torch.float32).clamp(0, 1)[None, :, :, None],
            torch.tensor([[x_m, -y_m]]),
            torch.tensor([[yaw_rad]]),
            torch.tensor([[previous]]),
            torch.tensor([[not self.first]]),
            self.state,
        )
        self.first = False
        return fine[0].numpy(), coarse[0].numpy(), motion[0].numpy()


@pytest.fixture
def walker() -> Walker:
    return Walker(mapping.MapMemory(TASK), torch.zeros(1, MAP_NUMBERS))


def wall(distance_m: float, left_of_m: float = -math.inf) -> np.ndarray:
    """A wall across the view at a distance, above an endless floor; only what of it lies left of a line."""
    camera, k = TASK.camera, TASK.camera.intrinsics
    down = (np.arange(HEIGHT) - k.cy) / k.fy
    left = -(np.arange(WIDTH) - k.cx) / k.fx
    floor_m = np.where(down > 0, camera.height_m / np.maximum(down, 1e-6), 1e3)[:, None]
    wall_m = np.where(left * distance_m >= left_of_m, distance_m, 1e3)[None, :]
    return np.minimum(floor_m, wall_m)


def cell(ahead_m: float, left_m: float) -> tuple[int, int]:
    """Row and column of the fine view."""
    middle = (FINE_CELLS - 1) / 2
    return round(middle - ahead_m / RESOLUTION_M), round(middle - left_m / RESOLUTION_M)


def test_a_wall_ahead_is_an_obstacle_where_it_stands_and_free_floor_before_it(walker: Walker) -> None:
    fine, _, _ = walker.look(wall(1.52), 0.0, 0.0, 0.0)
    assert (fine[cell(1.525, 0.0)], fine[cell(1.0, 0.0)]) == (mapping.HIT, -mapping.MISS)
    assert (fine[:10] > 0).sum() > 20
    assert (fine[FINE_CELLS // 2 + 5 :] == 0).all(), "behind, nothing was seen"


def test_where_the_image_ends_on_a_wall_the_floor_below_is_unknown(walker: Walker) -> None:
    fine, _, _ = walker.look(wall(1.27), 0.0, 0.0, 0.0)
    assert (fine[cell(1.275, 0.0)], fine[cell(1.0, 0.0)]) == (mapping.HIT, 0)


def test_floor_is_free_from_the_robot_on_where_the_image_ends_on_floor(walker: Walker) -> None:
    fine, coarse, _ = walker.look(wall(5.0), 0.0, 0.0, 0.0)
    assert fine[cell(0.5, 0.0)] < 0
    assert fine[cell(1.5, 0.0)] < 0
    assert fine[cell(0.3, 1.2)] == 0, "outside the field of view"
    assert coarse[1].max() == 1.0


def test_left_is_left(walker: Walker) -> None:
    fine, coarse, _ = walker.look(wall(1.52, left_of_m=0.3), 0.0, 0.0, 0.0)
    assert fine[cell(1.525, 0.8)] > 0
    assert fine[cell(1.525, -0.8)] <= 0
    rows, columns = np.nonzero(coarse[0] > 0)
    assert columns.max() < coarse.shape[-1] / 2
    assert rows.max() < coarse.shape[-1] / 2


@pytest.mark.slow
def test_what_was_seen_stays_when_the_robot_moves_and_turns(walker: Walker) -> None:
    walker.look(wall(2.0), 0.0, 0.0, 0.0)
    fine, _, motion = walker.look(wall(1.0, left_of_m=math.inf), 1.0, 0.0, math.pi / 2, FORWARD)
    assert fine[cell(0.0, -1.025)] > 0, "the wall ahead is now on the right"
    assert motion == pytest.approx([4.0, 0.0, 3.0], abs=1e-5)


@pytest.mark.slow
def test_evidence_is_bounded_and_fades(walker: Walker) -> None:
    for _ in range(6):
        walker.look(wall(1.52), 0.0, 0.0, 0.0)
    evidence = walker.state[0, :-POSE_NUMBERS]
    assert (float(evidence.max()), float(evidence.min())) == (mapping.MOST, mapping.LEAST)
    for _ in range(10):
        fine, _, _ = walker.look(wall(6.0), 0.0, 0.0, 0.0)
    assert fine[cell(1.525, 0.0)] <= 0


def test_a_blocked_move_marks_what_is_ahead(walker: Walker) -> None:
    walker.look(wall(6.0), 0.0, 0.0, 0.0)
    fine, _, motion = walker.look(wall(6.0), 0.1, 0.0, 0.0, FORWARD)
    assert motion[0] == pytest.approx(0.4)
    assert fine[cell(0.2, 0.0)] > 0
    unhindered, _, _ = walker.look(wall(6.0), 0.35, 0.0, 0.0, FORWARD)
    assert unhindered[cell(0.2, 0.0)] <= 0


def test_an_episode_begins_with_nothing_remembered(walker: Walker) -> None:
    before, _, _ = walker.look(wall(1.52), 0.0, 0.0, 0.0)
    walker.look(wall(1.0), 2.0, 1.0, 1.0, LEFT)
    walker.first = True
    again, _, motion = walker.look(wall(1.52), 0.0, 0.0, 0.0)
    np.testing.assert_array_equal(again, before)
    np.testing.assert_array_equal(motion, 0)


@pytest.mark.slow
def test_far_things_scroll_out_of_the_window(walker: Walker) -> None:
    walker.look(wall(1.52), 0.0, 0.0, 0.0)
    walker.look(wall(1.52), 20.0, 0.0, 0.0)
    evidence = walker.state[0, :-POSE_NUMBERS].reshape(CELLS, CELLS)
    assert (evidence[:, : CELLS // 2 - 4] == 0).all()


def test_the_full_image_sampled_maps_as_the_small_one() -> None:
    """The small camera's pixel centres lie up to 1.5 pixels of the large one away: at most a cell at 4 m."""
    full, small = load_task("pointnav_gps_compass"), Walker(mapping.MapMemory(TASK), torch.zeros(1, MAP_NUMBERS))
    large = Walker(mapping.MapMemory(full), torch.zeros(1, MAP_NUMBERS))
    depth = wall(1.52, left_of_m=0.3)
    (a, _, _), (b, _, _) = small.look(depth, 0.0, 0.0, 0.0), large.look(depth, 0.0, 0.0, 0.0)
    assert (np.sign(a) != np.sign(b)).mean() < 0.01


def test_a_camera_that_is_no_multiple_is_refused() -> None:
    with pytest.raises(ConfigError, match="640x360"):
        mapping.MapMemory(load_task("pointnav_habitat2020"))
