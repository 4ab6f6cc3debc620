"""The SDK's filters by YAML: what they do to depth, to its lens, and to which frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clockwork_simulation import ClockworkSimulation, exposed_ns, settled
from numpy.typing import NDArray

from drivers.realsense.emulator import EmulatedD435, EmulatedOptions
from drivers.realsense.filters import FilterOptions, Spatial, Temporal, Threshold
from drivers.realsense.live import LiveSource
from drivers.realsense.options import StreamOptions
from drivers.realsense.software_device import unit_lens
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import Pose3

OPTIONS = StreamOptions(color="640x360", depth="640x480", latency_s=0.03)


class Ramp(ClockworkSimulation):
    """Depth grows to the right, one count a pixel, so that a shift of columns is one of depth; a hole in the middle."""

    def render_depth(self, lens: Lens, map_from_camera: Pose3) -> NDArray[np.float32]:
        depth_m = np.broadcast_to(1 + np.arange(lens.width, dtype=np.float32) / 1000, (lens.height, lens.width)).copy()
        depth_m[200:230, 300:340] = 0
        return depth_m


def source(filters: FilterOptions, simulation: ClockworkSimulation | None = None) -> LiveSource:
    world = simulation if simulation is not None else Ramp()
    bus = EmulatedD435(world, OPTIONS.color, OPTIONS.depth, OPTIONS.rate_hz, EmulatedOptions(), "test")
    return LiveSource(world.clock, replace(OPTIONS, filters=filters), bus, "test")


def test_without_filters_depth_is_what_the_sensor_counted() -> None:
    with source(FilterOptions()) as camera:
        depth = camera.read(0, 1.0).depth
        assert depth[0, 0] == 1000
        assert depth[-1, -1] == 1639
        assert not depth[200:230, 300:340].any()


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_decimated_depth_comes_with_the_lens_that_images_the_same_points(factor: int) -> None:
    with source(FilterOptions(decimation=factor)) as camera:
        raw, lens = camera.read(0, 1.0), camera.calibration.depth
        assert raw.depth.shape == (lens.height, lens.width)
        full = unit_lens("depth", "640x480")
        # The median or mean of a block of a ramp is the ramp in the block's middle, if it is the middle's ray that
        # the lens gives for it.
        columns = np.arange(2, lens.width - 4)
        rays = lens.rays(np.stack([columns, np.full(columns.size, 10)], axis=-1).astype(float))
        middles = full.project(rays)[:, 0]
        assert raw.depth[10, columns] - 1000.0 == pytest.approx(middles, abs=0.51)


def test_a_threshold_leaves_holes() -> None:
    with source(FilterOptions(threshold=Threshold(1.1, 1.5))) as camera:
        depth = camera.read(0, 1.0).depth
        assert depth[depth > 0].min() >= 1100
        assert depth[depth > 0].max() <= 1500
        assert (depth == 0).any()


def test_holes_are_filled_only_if_asked_for() -> None:
    with source(FilterOptions(spatial=Spatial())) as camera:
        assert not camera.read(0, 1.0).depth[205:225, 305:335].any()
    with source(FilterOptions(hole_filling=1)) as camera:
        assert camera.read(0, 1.0).depth[200:230, 300:340].all()


def test_temporal_smoothing_takes_frames_after_the_asked_instant_alone() -> None:
    temporal = Temporal(frames=4, smooth_alpha=0.5, smooth_delta=100)
    world = ClockworkSimulation()
    with source(FilterOptions(temporal=temporal, disparity=False), world) as camera:
        clock = world.clock
        for _ in range(2):
            asked_ns = settled(clock, 1.0)
            raw = camera.read(asked_ns, 1.0)
            assert asked_ns <= exposed_ns(raw.depth) <= raw.color_stamp_ns
            assert raw.color_stamp_ns - asked_ns >= 3 * 33_000_000


def test_every_filter_together() -> None:
    filters = FilterOptions(2, Threshold(0.3, 8.0), True, Spatial(), Temporal(), 1)
    with source(filters) as camera:
        depth = camera.read(0, 1.0).depth
        assert depth.shape == (240, 320)
        assert depth[50, 2:150:10].astype(int) == pytest.approx(1000 + np.arange(4, 300, 20), abs=4)
