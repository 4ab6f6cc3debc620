"""Printed sheets in a view: where they are drawn, behind what, and how their edges are shaded."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from robot_runtime.common.transforms import OPTICAL_RPY_RAD, rotation_rpy, transform
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.printed_targets import Sheet, draw_sheets

LENS = Lens(160, 120, 100.0, 100.0, 79.5, 59.5, "brown_conrady", (-0.1, 0.02, 0.001, -0.001))
CAMERA = transform((0.0, 0.0, 0.5), rotation_rpy(*OPTICAL_RPY_RAD))


def facing(x_m: float, y_m: float = 0.0, z_m: float = 0.5, shade: int = 200) -> Sheet:
    pose = transform((x_m, y_m, z_m), rotation_rpy(0.2, -0.3, np.pi + 0.4))
    return Sheet(np.full((8, 8), shade, np.uint8), 0.3, 0.2, pose)


def draw(*sheets: Sheet, wall_m: float = 0.0) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    rgb = np.zeros((120, 160, 3), np.uint8)
    depth_m = np.full((120, 160), wall_m, np.float32)
    draw_sheets(sheets, LENS.pixel_rays(), CAMERA, rgb, depth_m)
    return rgb, depth_m


def corner_pixels(sheet: Sheet) -> NDArray[np.float64]:
    corners = np.array([(0, y * 0.15, z * 0.1) for y, z in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
    in_map = corners @ sheet.pose[:3, :3].T + sheet.pose[:3, 3]
    return LENS.project((in_map - CAMERA[:3, 3]) @ CAMERA[:3, :3])


def test_a_sheet_is_where_its_corners_project_to() -> None:
    sheet = facing(1.0, 0.1, 0.55)
    rgb, depth_m = draw(sheet)
    rows, columns = np.nonzero(rgb[..., 0])
    corners = corner_pixels(sheet)
    assert (columns.min(), rows.min()) == pytest.approx(corners.min(axis=0), abs=1)
    assert (columns.max(), rows.max()) == pytest.approx(corners.max(axis=0), abs=1)
    # Every drawn pixel's point lies on the plane.
    points = LENS.pixel_rays()[depth_m > 0] * depth_m[depth_m > 0, None].astype(np.float64)
    in_map = points @ CAMERA[:3, :3].T + CAMERA[:3, 3]
    assert np.abs((in_map - sheet.pose[:3, 3]) @ sheet.pose[:3, 0]).max() < 1e-6


def test_shades_add_up_to_the_area() -> None:
    """Share of a pixel that a sheet covers is the share that it adds to it."""
    sheet = facing(1.0)
    rgb, _ = draw(sheet)
    x, y = corner_pixels(sheet).T
    area = abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2
    # The lens bends the sides by less than a pixel over a length of 30.
    assert rgb[..., 0].sum() / 200 == pytest.approx(area, rel=0.01)


def test_what_stands_before_a_sheet_hides_it() -> None:
    assert not draw(facing(1.0), wall_m=0.5)[0].any()
    assert draw(facing(1.0), wall_m=2.0)[0].any()
    near, far = facing(1.0, shade=50), facing(2.0, shade=250)
    for order in ((near, far), (far, near)):
        rgb, depth_m = draw(*order)
        assert rgb[60, 80, 0] == 50
        assert depth_m[60, 80] == pytest.approx(1.0, abs=0.05)


def test_nothing_is_drawn_of_what_is_not_seen() -> None:
    from_behind = Sheet(np.full((2, 2), 9, np.uint8), 0.3, 0.2, transform((1, 0, 0.5), np.eye(3)))
    for sheet in (from_behind, facing(-1.0), facing(1.0, 5.0)):
        rgb, depth_m = draw(sheet)
        assert not rgb.any()
        assert not depth_m.any()


def test_malformed_sheets_are_refused() -> None:
    with pytest.raises(ValueError, match="uint8"):
        Sheet(np.zeros((2, 2)), 1, 1, np.eye(4))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="positive"):
        Sheet(np.zeros((2, 2), np.uint8), 0, 1, np.eye(4))
