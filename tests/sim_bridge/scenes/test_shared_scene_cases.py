"""Scenes, maps and episode files made after public bug reports: each gives the right value, or is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from raising import raises_naming

from robot_runtime.datasets.files import iter_readable, load_episodes
from robot_runtime.errors import EpisodeError, SceneError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from sim_bridge.scenes.pieces import read_pieces


@pytest.fixture(scope="module")
def cases() -> Path:
    folder = Path(__file__).resolve().parents[4] / "shared" / "cases"
    if not folder.is_dir():
        pytest.skip(f"shared cases are not at {folder}")
    return folder


def place(path: Path, name: str) -> tuple[list[float], list[str]]:
    """The lowest corner of a model in the world, and the notes."""
    notes: list[str] = []
    piece = next(piece for piece in read_pieces(path, notes=notes) if piece.name == name)
    return piece.world_points().min(axis=0).round(3).tolist(), notes


def test_gazebo_worlds(cases: Path) -> None:
    assert place(cases / "w01_saved_state/saved.world", "table")[0] == [1.5, 1.1, 0.0]
    assert place(cases / "w09_placement_frame/lab.sdf", "stool")[0][2] == 0.0
    assert place(cases / "w08_quat_pose/lab.sdf", "bench")[0] == [0.85, -1.0, 0.0]
    _, notes = place(cases / "w10_actor_population/lab.world", "floor")
    assert any("actor" in note and "walker" in note for note in notes)
    assert any("population" in note and "boxes" in note for note in notes)
    with raises_naming(SceneError, "fuel.gazebosim.org"):
        read_pieces(cases / "w06_fuel_uri/lab.sdf")


@pytest.mark.parametrize(
    ("name", "extension"),
    [
        ("g01_glb_draco/scan.glb", "KHR_draco_mesh_compression"),
        ("g02_glb_ktx2/scan.basis.glb", "KHR_texture_basisu"),
        ("g04_glb_meshopt/scan.glb", "EXT_meshopt_compression"),
    ],
)
def test_scans_with_required_extensions(cases: Path, name: str, extension: str) -> None:
    with raises_naming(SceneError, name.rpartition("/")[2], extension):
        read_pieces(cases / name)


@pytest.mark.parametrize("name", ["p01_nav2_free_thresh_025", "p02_mode_scale", "p03_mode_raw", "p08_ascii_pgm"])
def test_maps_keep_what_no_robot_has_seen(cases: Path, name: str) -> None:
    found = OccupancyMap.load(cases / name / "map.yaml")
    assert found.area_m2(Cell.UNKNOWN) == pytest.approx(12.23, abs=0.01)
    assert found.area_m2(Cell.FREE) == pytest.approx(20.52, abs=0.01)


def test_rooms_without_a_way_are_not_connected(cases: Path) -> None:
    geodesic = GeodesicMap(OccupancyMap.load(cases / "p01_nav2_free_thresh_025" / "map.yaml"), 0.18)
    free = geodesic.map.navigable(0.18)
    rows, columns = free.nonzero()
    points = [geodesic.map.to_point(row, column) for row, column in zip(rows[::97], columns[::97], strict=True)]
    assert any(not geodesic.field([points[0]]).at(*point) < 1e6 for point in points)


def test_episode_files(cases: Path) -> None:
    for name, field in (("val", "geodesic_distance"), ("val_nan", "start_position")):
        refused, read = iter_readable(cases / "e01_json_infinity" / f"{name}.json.gz")
        assert isinstance(refused, EpisodeError)
        assert field in refused.message
        assert not isinstance(read, EpisodeError)
    with raises_naming(EpisodeError, "start_rotation", "vertical"):
        load_episodes(cases / "e04_quat_wxyz" / "val.json.gz")
    with raises_naming(EpisodeError, "content"):
        load_episodes(cases / "e05_empty_split" / "val" / "val.json.gz")
    with raises_naming(EpisodeError, "empty"):
        load_episodes(cases / "e05_empty_split" / "zero" / "val.json.gz")
