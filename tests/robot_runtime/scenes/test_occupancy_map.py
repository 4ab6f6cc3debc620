"""ROS maps: the same cells after writing and reading, row 0 at the bottom, and honest errors."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from raising import raises_naming

from robot_runtime.errors import ConfigError, SceneError
from robot_runtime.scenes.occupancy_map import Cell, MapFile, OccupancyMap

F, O, U = Cell.FREE, Cell.OCCUPIED, Cell.UNKNOWN  # noqa: E741


def small() -> OccupancyMap:
    """Three columns, two rows; the bottom row is free, occupied, unknown."""
    return OccupancyMap(np.array([[F, O, U], [U, U, F]], np.uint8), 0.5, -1.0, 2.0)


CELLS = hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(0, 2))


@pytest.mark.slow
@given(CELLS, st.floats(0.001, 1), st.floats(-100, 100), st.floats(-100, 100))
def test_a_map_comes_back(
    tmp_path_factory: pytest.TempPathFactory, cells: np.ndarray, resolution_m: float, x_m: float, y_m: float
) -> None:
    path = tmp_path_factory.getbasetemp() / "round_trip_map.yaml"
    OccupancyMap(cells, resolution_m, x_m, y_m).save(path)
    back = OccupancyMap.load(path)
    assert np.array_equal(back.cells, cells)
    assert (back.resolution_m, back.origin_x_m, back.origin_y_m) == (resolution_m, x_m, y_m)


def test_the_image_is_upside_down_as_ros_has_it() -> None:
    header, pixels = small().to_pgm()[:-6], small().to_pgm()[-6:]
    assert header == b"P5\n3 2\n255\n"
    assert list(pixels) == [205, 205, 254, 254, 0, 205], "the first row of the image is the largest y"


@pytest.mark.parametrize(
    ("negate", "pixel", "cell"),
    [
        (0, 254, F),
        (0, 0, O),
        (0, 205, U),
        (0, 89, O),  # (255 - 89) / 255 = 0.651 > 0.65
        (0, 90, U),
        (0, 206, F),  # (255 - 206) / 255 = 0.192 < 0.196
        (1, 0, F),
        (1, 255, O),
        (1, 100, U),
    ],
)
def test_trinary_thresholds_are_map_servers(tmp_path: Path, negate: int, pixel: int, cell: Cell) -> None:
    cv2.imwrite(str(tmp_path / "m.png"), np.full((1, 1), pixel, np.uint8))
    path = tmp_path / "m.yaml"
    path.write_text(
        f"image: m.png\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: {negate}\n"
        "occupied_thresh: 0.65\nfree_thresh: 0.196\n"
    )
    assert OccupancyMap.load(path).cells.tolist() == [[cell]]


def read(folder: Path, pixels: object, **fields: object) -> OccupancyMap:
    """The map of an image (uint8 or uint16; rows from the top) with these fields of ``map.yaml``."""
    cv2.imwrite(str(folder / "m.png"), np.asarray(pixels))
    lines = {"image": "m.png", "resolution": 0.05, "origin": [0, 0, 0], "negate": 0, "occupied_thresh": 0.65, **fields}
    (folder / "m.yaml").write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
    return OccupancyMap.load(folder / "m.yaml")


@pytest.mark.parametrize("free_thresh", [0.196, 0.25, 0.4])
def test_the_savers_gray_stays_unknown_whatever_the_thresholds(tmp_path: Path, free_thresh: float) -> None:
    pixels = np.array([[254, 205, 0]], np.uint8)
    assert read(tmp_path, pixels, free_thresh=free_thresh, mode="trinary").cells.tolist() == [[F, U, O]]


def test_scale_reads_transparent_pixels_and_the_savers_gray_as_unknown(tmp_path: Path) -> None:
    opaque = np.array([[254, 235, 205, 120, 0]], np.uint8)
    assert read(tmp_path, opaque, free_thresh=0.196, mode="scale").cells.tolist() == [[F, F, U, U, O]]
    for depth, most in ((np.uint8, 255), (np.uint16, 65535)):
        colors = np.full((1, 3, 4), most, depth)
        colors[0, 2, :3] = 0
        colors[0, 1, 3] = most // 2
        assert read(tmp_path, colors, free_thresh=0.196, mode="scale").cells.tolist() == [[F, U, O]]


def test_raw_pixels_are_percentages(tmp_path: Path) -> None:
    pixels = np.array([[0, 10, 19, 30, 64, 66, 100, 101, 205, 255]], np.uint8)
    found = read(tmp_path, pixels, free_thresh=0.196, mode="raw").cells.tolist()
    assert found == [[F, F, F, U, U, O, O, U, U, U]]


@pytest.mark.parametrize("fields", [{"free_thresh": 0.7}, {"free_thresh": 25}, {"free_thresh": -0.1}])
def test_thresholds_are_probabilities_in_their_order(tmp_path: Path, fields: dict[str, float]) -> None:
    with raises_naming(ConfigError, "free_thresh", "occupied_thresh", str(tmp_path / "m.yaml")):
        read(tmp_path, np.zeros((1, 1), np.uint8), **fields)


def test_a_text_image_without_a_last_newline_is_read(tmp_path: Path) -> None:
    (tmp_path / "m.pgm").write_text("P2\n3 1\n255\n254 205 0")
    text = "image: m.pgm\nresolution: 0.05\norigin: [0, 0, 0]\n"
    (tmp_path / "m.yaml").write_text(text)
    found = OccupancyMap.load(tmp_path / "m.yaml")
    assert found.cells.tolist() == [[F, U, O]]
    assert [found.area_m2(state) for state in (F, O, U)] == pytest.approx([0.0025] * 3)


def test_cells_and_points() -> None:
    m = small()
    assert m.size_m == (1.5, 1.0)
    assert m.to_cell(-1.0, 2.0) == (0, 0)
    assert m.to_cell(0.49, 2.99) == (1, 2)
    assert m.to_point(0, 0) == (-0.75, 2.25)
    assert m.to_cell(*m.to_point(1, 2)) == (1, 2)
    assert m.contains(-1.0, 2.0)
    assert not m.contains(0.5, 2.0)
    assert not m.contains(-1.001, 2.0)
    assert not m.contains(0.0, 1.999)
    assert not m.contains(0.0, 3.0)


@given(st.integers(-50, 50), st.integers(-50, 50), st.floats(0.01, 1), st.floats(-9, 9), st.floats(-9, 9))
def test_the_center_of_a_cell_lies_in_it(row: int, column: int, resolution_m: float, x_m: float, y_m: float) -> None:
    m = OccupancyMap(np.zeros((1, 1), np.uint8), resolution_m, x_m, y_m)
    assert m.to_cell(*m.to_point(row, column)) == (row, column)


def test_a_disc_fits_where_its_clearance_allows() -> None:
    cells = np.zeros((11, 11), np.uint8)
    cells[5, 5] = O
    m = OccupancyMap(cells, 0.1, 0.0, 0.0)
    clearance_m = m.clearance_m()
    assert clearance_m[5, 5] == 0
    assert clearance_m[5, 6] == pytest.approx(0.05), "from the center of the neighbor to the obstacle's side"
    assert clearance_m[5, 8] == pytest.approx(0.25)
    assert clearance_m[0, 0] == pytest.approx(0.05), "the edge of the map is not free"
    assert m.navigable(0.25)[5, 8]
    assert not m.navigable(0.26)[5, 8]


def test_clearance_is_computed_once_cannot_be_changed_and_does_not_travel() -> None:
    m = OccupancyMap(np.zeros((50, 50), np.uint8), 0.1, 0.0, 0.0)
    untouched = len(pickle.dumps(m))
    assert m.clearance_m() is m.clearance_m()
    assert not m.clearance_m().flags.writeable
    assert len(pickle.dumps(m)) == untouched
    assert np.array_equal(pickle.loads(pickle.dumps(m)).clearance_m(), m.clearance_m())


@pytest.mark.parametrize("blocked", [O, U])
def test_the_unknown_is_as_impassable_as_a_wall(blocked: Cell) -> None:
    cells = np.zeros((3, 9), np.uint8)
    cells[:, 4] = blocked
    assert OccupancyMap(cells, 0.1, 0.0, 0.0).navigable(0.04)[1].tolist() == [True] * 4 + [False] + [True] * 4


@given(CELLS, st.floats(0, 0.3))
def test_only_free_cells_are_navigable_and_a_larger_robot_fits_nowhere_else(cells: np.ndarray, radius_m: float) -> None:
    m = OccupancyMap(cells, 0.1, 0.0, 0.0)
    assert not (m.navigable(max(radius_m, 1e-9)) & (cells != F)).any()
    assert not (m.navigable(radius_m + 0.1) & ~m.navigable(radius_m)).any()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"resolution": 0.0}, SceneError, "field 'resolution' must be meters per pixel from 0.001 to 10.0, got 0.0"),
        ({"resolution": math.nan}, SceneError, "field 'resolution' must be"),
        ({"resolution": 1e300}, SceneError, "field 'resolution' must be"),
        ({"resolution": 1e-300}, SceneError, "field 'resolution' must be"),
        ({"origin": (0.0, -1e300, 0.0)}, SceneError, "field 'origin' is farther than 1e+07 m"),
        ({"image": "bomb.pgm"}, SceneError, "field 'image': bomb.pgm: 40000x40000 pixels"),
        ({"origin": (0.0, 0.0, 0.5)}, SceneError, "field 'origin' has yaw 0.5"),
        ({"image": "gone.pgm"}, SceneError, "field 'image': cannot read gone.pgm"),
    ],
)
def test_a_map_that_cannot_be_used_is_named(
    tmp_path: Path, change: dict[str, object], error: type[Exception], message: str
) -> None:
    content: dict[str, object] = {"image": "m.pgm", "resolution": 0.05, "origin": (0.0, 0.0, 0.0), **change}
    images = {"m.pgm": small().to_pgm(), "bomb.pgm": b"P5\n40000 40000\n255\n"}
    image = images.get(str(content["image"]), b"")
    with pytest.raises(error) as caught:
        OccupancyMap.decode(MapFile(**content), image, "here")  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"here: {message}")


def test_files_that_are_no_map_are_named(tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    small().save(path)
    (tmp_path / "map.pgm").write_bytes(b"P5\n3 2\n")
    with raises_naming(SceneError, "map.yaml", "field 'image'", "map.pgm"):
        OccupancyMap.load(path)
    path.write_text("image: map.pgm\nresolution: fine\norigin: [0, 0, 0]\n")
    with raises_naming(ConfigError, "map.yaml", "field 'resolution'", "'fine'"):
        OccupancyMap.load(path)
    path.write_text("image: map.pgm\nresolution: 0.05\norigin: [0, 0]\n")
    with raises_naming(ConfigError, "field 'origin"):
        OccupancyMap.load(path)
    path.write_text("image: map.pgm\nresolution: 0.05\norigin: [0, 0, 0]\nmode: gray\n")
    with raises_naming(ConfigError, "field 'mode'", "'trinary'"):
        OccupancyMap.load(path)
