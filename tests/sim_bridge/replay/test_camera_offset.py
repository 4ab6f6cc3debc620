"""A camera that is not where the log has it is found from depth alone, as far as its images tell."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_runtime.common.geometry import optical_axes
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from sim_bridge.replay.camera_offset import CameraOffset, Surfaces, camera_offset, surfaces
from tests.benchmarks.runtime.ray_cast_room import Room

PINHOLE = Intrinsics.from_hfov(160, 120, 79.0)
RAYS = Lens.of(PINHOLE).pixel_rays()
AXES = optical_axes(0.0, 0.0)
"""The analytic room's own axes are those of a level camera that looks ahead."""

PANS_RAD = (-0.5, 0.0, 0.4)


@dataclass(frozen=True)
class Wrong:
    """True mounting of a camera."""

    tilt_deg: float = 0.0
    pan_deg: float = 0.0
    roll_deg: float = 0.0
    forward_mm: float = 0.0
    left_mm: float = 0.0
    up_mm: float = 0.0


def depth(room: Room, pan_rad: float, wrong: Wrong) -> np.ndarray:
    """Depth image of a level camera with a wrong mount, float32 (H, W)."""
    roll_rad = math.radians(wrong.roll_deg)
    rolled = np.array(
        [[math.cos(roll_rad), -math.sin(roll_rad), 0], [math.sin(roll_rad), math.cos(roll_rad), 0], [0, 0, 1]]
    )
    axes = optical_axes(pan_rad + math.radians(wrong.pan_deg), math.radians(wrong.tilt_deg)) @ rolled
    place_m = np.array([wrong.forward_mm, wrong.left_mm, wrong.up_mm]) / 1000
    return room.cast(AXES.T @ place_m, RAYS @ (AXES.T @ axes).T).astype(np.float32)


def images(room: Room, wrong: Wrong, spoil: float = 0.0) -> list[Surfaces]:
    """Pairs of an episode; ``spoil`` is the noise of depth, as a share of it."""
    random = np.random.default_rng(0)
    found = []
    for pan_rad in PANS_RAD:
        recorded = depth(room, pan_rad, wrong)
        recorded *= 1 + spoil * random.standard_normal(recorded.shape).astype(np.float32)
        found.append(surfaces(recorded, depth(room, pan_rad, Wrong()), PINHOLE, pan_rad, 0.0))
    return found


def numbers(offset: CameraOffset | None) -> Wrong:
    assert offset is not None
    known = (offset.tilt_deg, offset.pan_deg, offset.roll_deg, offset.forward_mm, offset.left_mm, offset.up_mm)
    assert all(one is not None for one in known)
    return Wrong(*(one.value for one in known if one is not None))


DEG, MM = st.floats(-4, 4), st.floats(-30, 30)


@settings(max_examples=12)
@given(st.builds(Wrong, DEG, DEG, DEG, MM, MM, MM), st.integers(0, 50))
def test_any_small_offset_is_found(wrong: Wrong, seed: int) -> None:
    found = numbers(camera_offset(images(Room.random(seed), wrong, spoil=0.002)))
    assert (found.tilt_deg, found.pan_deg, found.roll_deg) == pytest.approx(
        (wrong.tilt_deg, wrong.pan_deg, wrong.roll_deg), abs=0.1
    )
    assert (found.forward_mm, found.left_mm, found.up_mm) == pytest.approx(
        (wrong.forward_mm, wrong.left_mm, wrong.up_mm), abs=5
    )


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert numbers(camera_offset(images(Room(), Wrong()))) == Wrong()


def test_what_images_do_not_tell_is_not_told() -> None:
    """A floor alone tells of tilt, roll and height, and of nothing else."""
    floor = Room(corner=(-90.0, -90.0, -90.0), opposite=(90.0, 0.9, 90.0), box_opposite=(-1.3, -0.1, 1.6), radius_m=0.0)
    offset = camera_offset(images(floor, Wrong(tilt_deg=1.5, up_mm=10.0)))
    assert offset is not None
    assert offset.tilt_deg is not None
    assert offset.tilt_deg.value == pytest.approx(1.5, abs=0.01)
    assert offset.up_mm is not None
    assert offset.up_mm.value == pytest.approx(10.0, abs=0.5)
    assert (offset.pan_deg, offset.forward_mm, offset.left_mm) == (None, None, None)


def test_bias_of_depth_by_distance_is_what_no_offset_explains() -> None:
    wrong, room = Wrong(tilt_deg=-2.0, up_mm=15.0), Room()
    found = []
    for pan_rad in PANS_RAD:
        recorded = depth(room, pan_rad, wrong)
        recorded += np.float32(0.008) * recorded**2
        found.append(surfaces(recorded, depth(room, pan_rad, Wrong()), PINHOLE, pan_rad, 0.0))
    offset = camera_offset(found)
    assert offset is not None
    assert offset.tilt_deg is not None
    assert offset.tilt_deg.value == pytest.approx(-2.0, abs=0.2)
    assert len(offset.biases) > 1
    near, far = offset.biases[0], offset.biases[-1]
    assert near.depth_m < far.depth_m
    # Together with the camera's place, depth is what was recorded: the differences between distances remain.
    wanted_mm = 8 * (far.depth_m**2 - near.depth_m**2)
    assert far.bias_mm - near.bias_mm == pytest.approx(wanted_mm, rel=0.25)
    exact = camera_offset(images(room, wrong))
    assert exact is not None
    assert max(abs(one.bias_mm) for one in exact.biases) < 0.5


def test_too_little_is_no_estimate() -> None:
    empty = np.zeros((120, 160), np.float32)
    simulator = depth(Room(), 0.0, Wrong())
    assert camera_offset([surfaces(empty, simulator, PINHOLE, 0.0, 0.0)]) is None
    assert camera_offset([]) is None


def test_the_error_says_how_well_it_is_known() -> None:
    """Ten times the noise, more than three times the error; and the truth lies within three."""
    wrong = Wrong(tilt_deg=1.0)
    quiet, loud = (camera_offset(images(Room(), wrong, spoil)) for spoil in (0.001, 0.01))
    assert quiet is not None
    assert loud is not None
    assert quiet.tilt_deg is not None
    assert loud.tilt_deg is not None
    assert loud.tilt_deg.error > 3 * quiet.tilt_deg.error
    assert abs(loud.tilt_deg.value - 1.0) < 3 * loud.tilt_deg.error
