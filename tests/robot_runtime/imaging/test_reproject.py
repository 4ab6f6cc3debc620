import functools
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from robot_runtime.common.transforms import rotation_rpy
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.reproject import Reprojector
from robot_runtime.imaging.rig import RgbdCalibration
from tests.benchmarks.runtime.ray_cast_room import Room, color_image, depth_counts, time_of_flight_rig

ROOM = Room()
TARGET = Intrinsics.from_hfov(640, 480, 79.0)
SMALL = Intrinsics.from_hfov(64, 48, 60.0)


def flat_rig(height: int = 60, baseline_m: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> RgbdCalibration:
    """Two ideal pinholes side by side, looking the same way."""
    matrix = np.eye(4)
    matrix[:3, 3] = baseline_m
    lens = Lens(80, height, 60.0, 60.0, 39.5, (height - 1) / 2)
    return RgbdCalibration(lens, lens, matrix, 0.001, "flat", "simulation")


@functools.cache
def kinect_pair() -> tuple[np.ndarray, np.ndarray]:
    rig = time_of_flight_rig()
    return color_image(ROOM, rig.color), depth_counts(ROOM, rig, 0.5, 5.5)


def black(rig: RgbdCalibration) -> np.ndarray:
    return np.zeros((rig.color.height, rig.color.width, 3), np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("turn_deg", [(0.0, 0.0, 0.0), (1.5, -3.0, 2.0)], ids=["straight", "turned"])
def test_a_kinects_pair_is_the_training_cameras_to_a_fraction_of_a_millimeter(turn_deg: tuple[float, ...]) -> None:
    rig = time_of_flight_rig()
    turn = rotation_rpy(*(math.radians(angle) for angle in turn_deg))
    seen = Reprojector(rig, TARGET, turn, (0.4, 6.0))(*kinect_pair())
    rays = Lens.of(TARGET).pixel_rays() @ turn.T
    truth_m = ROOM.cast(np.zeros(3), rays)
    error_mm = 1000 * np.abs(seen.depth_m - truth_m)[~seen.holes]
    assert seen.holes.mean() < 0.12
    assert np.median(error_mm) <= 0.2
    assert np.percentile(error_mm, 95) <= 0.5
    assert (error_mm > 20).mean() < 0.003
    lit = seen.rgb.any(axis=-1)
    truth = color_image(ROOM, Lens.of(TARGET), turn)
    assert lit.mean() > 0.9
    assert np.percentile(np.abs(seen.rgb[lit].astype(int) - truth[lit]), 99) <= 3


def test_color_far_finer_than_the_target_is_averaged_not_skipped() -> None:
    rig = flat_rig()
    fine = Lens(800, 600, 600.0, 600.0, 399.5, 299.5)
    checkers = np.indices((600, 800)).sum(axis=0) % 2 * np.uint8(200)
    image = np.repeat(checkers.astype(np.uint8)[..., None], 3, axis=2)
    seen = Reprojector(replace(rig, color=fine), SMALL)(image, None)
    assert set(np.unique(seen.rgb)) <= {99, 100, 101}
    # And it stays in place: a ramp is a ramp, read where each target pixel looks.
    ramp = np.broadcast_to((np.arange(800) / 4).astype(np.uint8)[None, :, None], (600, 800, 3))
    seen = Reprojector(replace(rig, color=fine), SMALL)(np.ascontiguousarray(ramp), None)
    expected = (600 * (np.arange(64) - SMALL.cx) / SMALL.fx + 399.5) / 4
    np.testing.assert_allclose(seen.rgb[24, :, 0], expected, atol=1.0)


def test_what_the_color_sensor_does_not_see_is_black_and_said() -> None:
    rig = flat_rig()
    wide = Intrinsics.from_hfov(64, 48, 100.0)
    reprojector = Reprojector(rig, wide)
    seen = reprojector(np.full((60, 80, 3), 200, np.uint8), None)
    assert (seen.rgb[reprojector.unseen] == 0).all()
    assert (seen.rgb[~reprojector.unseen] == 200).all()
    half_width = math.tan(math.radians(50)) * 60 / 40  # the target's, in the sensor's
    assert reprojector.unseen[24].mean() == pytest.approx(1 - 1 / half_width, abs=0.05)


def test_depths_at_an_edge_are_of_one_side_or_the_other() -> None:
    rig = flat_rig(baseline_m=(-0.03, 0.0, 0.0))
    depth = np.full((60, 80), 3000, np.uint16)
    depth[:, :40] = 1000
    seen = Reprojector(rig, SMALL)(black(rig), depth)
    assert set(np.unique(np.round(seen.depth_m, 4))) == {0.0, 1.0, 3.0}
    # Between them a strip is seen by the color sensor alone: parallax of 3 cm, 1 m and 3 m away, and half a cell.
    assert 1 <= seen.holes[24, 4:-4].sum() <= 3


def test_what_is_nearer_hides_what_is_behind_whatever_is_drawn_first() -> None:
    for side in (-1, 1):
        rig = flat_rig(baseline_m=(0.0, side * 0.2, 0.0))
        depth = np.full((60, 80), 3000, np.uint16)
        depth[25:35, 30:50] = 1000
        seen = Reprojector(rig, SMALL)(black(rig), depth)
        rows, _ = np.nonzero(np.abs(seen.depth_m - 1) < 1e-3)
        near = slice(rows.min(), rows.max() + 1)
        assert 5 <= len(set(rows)) <= 12
        assert (np.abs(seen.depth_m[near, 30:34] - 1) < 1e-3).all()


@pytest.mark.slow  # may be the first that compiles
def test_a_slanted_plane_stays_one() -> None:
    rig = flat_rig()
    rays = rig.depth.pixel_rays()
    plane_m = 2.0 / (1 + 0.6 * rays[..., 0] - 0.4 * rays[..., 1])  # z = 2 - 0.6 x + 0.4 y
    seen = Reprojector(rig, SMALL)(black(rig), np.rint(plane_m * 1000).astype(np.uint16))
    target = Lens.of(SMALL).pixel_rays()
    truth_m = 2.0 / (1 + 0.6 * target[..., 0] - 0.4 * target[..., 1])
    assert not seen.holes.any()
    assert np.abs(seen.depth_m - truth_m).max() < 1e-3


def test_holes_are_where_nothing_was_measured() -> None:
    rig = flat_rig()
    depth = np.full((60, 80), 2000, np.uint16)
    depth[20:40, 30:50] = 0
    seen = Reprojector(rig, SMALL)(black(rig), depth)
    assert (seen.holes == (seen.depth_m == 0)).all()
    assert seen.holes[18:30, 25:39].all()
    assert not seen.holes[:10].any()
    assert Reprojector(rig, SMALL)(black(rig), np.zeros((60, 80), np.uint16)).holes.all()
    assert Reprojector(rig, SMALL)(black(rig), None).holes.all()


def test_the_range_is_the_sensors() -> None:
    rig = flat_rig()
    depth = np.full((60, 80), 2000, np.uint16)
    depth[:, :40] = 400
    seen = Reprojector(rig, SMALL, depth_range_m=(0.5, 2.5))(black(rig), depth)
    assert seen.holes[:, :31].all()
    assert not seen.holes[:, 34:].any()
    assert Reprojector(rig, SMALL, depth_range_m=(0.5, 1.5))(black(rig), depth).holes.all()


def test_counts_have_a_unit_and_a_bias() -> None:
    rig = replace(flat_rig(), depth_unit_m=0.00025, depth_bias_m=-0.02)
    seen = Reprojector(rig, SMALL)(black(rig), np.full((60, 80), 8000, np.uint16))
    np.testing.assert_allclose(seen.depth_m[~seen.holes], 1.98, atol=1e-5)


def test_pixels_without_a_ray_measure_nothing() -> None:
    rig = replace(flat_rig(), depth=replace(flat_rig().depth, max_radius=0.3))
    seen = Reprojector(rig, SMALL)(black(rig), np.full((60, 80), 2000, np.uint16))
    radius = np.hypot(*np.moveaxis(Lens.of(SMALL).pixel_rays()[..., :2], -1, 0))
    assert seen.holes[radius > 0.31].all()
    assert not seen.holes[radius < 0.26].any()


def test_images_of_another_mode_are_refused() -> None:
    rig = flat_rig()
    reprojector = Reprojector(rig, SMALL)
    depth = np.ones((60, 80), np.uint16)
    for color, wrong in ((black(rig)[:, :70], depth), (black(rig), depth[:50]), (black(rig), depth.astype(np.int32))):
        with pytest.raises(DeviceFault, match=r"camera flat: a (color|depth) image is .* its calibration is for"):
            reprojector(color, wrong)
    with pytest.raises(ValueError, match="near < far"):
        Reprojector(rig, SMALL, depth_range_m=(2.0, 1.0))


def test_any_layout_of_memory_gives_the_same() -> None:
    rig = flat_rig()
    depth = np.random.default_rng(0).integers(1000, 1020, (60, 80)).astype(np.uint16)
    reprojector = Reprojector(rig, SMALL)
    once = reprojector(black(rig), depth).depth_m.copy()
    frozen = np.asfortranarray(depth)
    frozen.flags.writeable = False
    np.testing.assert_array_equal(reprojector(black(rig), frozen).depth_m, once)


@pytest.mark.slow
def test_nothing_is_allocated_after_the_first_frame() -> None:
    rig = time_of_flight_rig()
    reprojector = Reprojector(rig, TARGET)
    reprojector.warm_up()
    color, depth = black(rig), np.full((576, 640), 1500, np.uint16)
    first = reprojector(color, depth)
    peaks = []
    for _ in range(5):  # threads that other tests left allocate now and then, too
        tracemalloc.start()
        try:
            for _ in range(3):
                again = reprojector(color, depth)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert min(peaks) < 4096  # Python's own small objects
    assert again.depth_m is first.depth_m
    assert again.rgb is first.rgb
