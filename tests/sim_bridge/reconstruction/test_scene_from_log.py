"""Scenes from logs: walls, free floor, episodes in them, and requirements on the logs."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh
from changed_room import F, L, rewritten, survey
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.common.transforms import transform
from robot_runtime.errors import ConfigError, RecordingError, SceneError
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason, Outcome, StepRecord
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, load_scene
from sim_bridge.physics.scene_model import SOLID, build_model, has_floor
from sim_bridge.reconstruction.build import FusedScene, FusionOptions, build_scene
from sim_bridge.reconstruction.logged_frames import FrameSequence, PosedFrame, reliable
from sim_bridge.reconstruction.occupancy_mapping import MappingOptions, VoxelGrid
from sim_bridge.scenes.mesh_files import load_mesh, palette, palette_uv
from sim_bridge.scenes.shapes import visual_triangles

pytestmark = pytest.mark.slow  # what they share takes far longer than each test

Fused = tuple[FusedScene, Scene]


@pytest.fixture(scope="session")
def fused(room_logs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Fused:
    """The room, made of its logs."""
    folder = tmp_path_factory.mktemp("fused") / "lab"
    made = build_scene(FrameSequence(room_logs), folder)
    return made, load_scene(folder)


def surface_distance_m(points: np.ndarray) -> np.ndarray:
    """Distance from points (N, 3) to the nearest surface of the generated room."""
    boxes = [((1.5, 1.2, 0.25), (0.5, 0.4, 0.5)), ((-1.5, -1.2, 0.35), (0.3, 0.3, 0.7))]
    boxes += [((s * 3.05, 0, 1.25), (0.1, 4.2, 2.5)) for s in (1, -1)]
    boxes += [((0, s * 2.05, 1.25), (6.2, 0.1, 2.5)) for s in (1, -1)]
    distances = [np.abs(points[:, 2])]
    for center, size in boxes:
        beyond = np.abs(points - center) - np.array(size) / 2
        outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
        distances.append(np.abs(outside + np.minimum(beyond.max(axis=1), 0)))
    return np.min(distances, axis=0)


def at_points_of(occupancy: OccupancyMap, other: OccupancyMap) -> np.ndarray:
    """The cells of ``occupancy`` at the centers of the cells of ``other``; unknown beyond its edge."""
    found = np.full(other.cells.shape, Cell.UNKNOWN, np.uint8)
    for row, column in np.ndindex(*other.cells.shape):
        point = other.to_point(row, column)
        if occupancy.contains(*point):
            found[row, column] = occupancy.cells[occupancy.to_cell(*point)]
    return found


def test_free_floor_is_the_rooms(fused: Fused, room: Scene) -> None:
    found, true = at_points_of(fused[1].map, room.map), room.map.cells
    free = (found == Cell.FREE) & (true == Cell.FREE)
    either = (found == Cell.FREE) | (true == Cell.FREE)
    assert free.sum() / either.sum() > 0.93
    # The space beyond the walls was not seen.
    x_m, y_m = np.meshgrid(
        *(np.arange(n) * 0.05 - o + 0.025 for n, o in zip(true.shape[::-1], (3.5, 2.5), strict=True))
    )
    outside = (np.abs(x_m) > 3.12) | (np.abs(y_m) > 2.12)
    assert (found[outside] == Cell.UNKNOWN).all()


def test_what_is_occupied_lies_on_surfaces(fused: Fused) -> None:
    occupancy = fused[1].map
    cells = np.argwhere(occupancy.cells == Cell.OCCUPIED)
    points = np.array([(*occupancy.to_point(*cell), 0.3) for cell in cells.tolist()])
    # Seen from above, tables are occupied all over.
    on_top = np.zeros(len(points), bool)
    for center, size in (((1.5, 1.2), (0.5, 0.4)), ((-1.5, -1.2), (0.3, 0.3))):
        on_top |= (np.abs(points[:, :2] - center) < np.array(size) / 2).all(axis=1)
    off_m = surface_distance_m(points[~on_top])
    assert np.median(off_m) < 0.02
    assert off_m.max() < 0.06


def test_walls_are_accurate_to_a_centimeter(fused: Fused) -> None:
    _, scene = fused
    corners = np.concatenate([t.reshape(-1, 3) for t in visual_triangles(scene.folder, scene.file)])
    above = corners[corners[:, 2] > 0.1]
    off_m = surface_distance_m(above)
    assert np.median(off_m) < 0.01
    assert np.quantile(off_m, 0.95) < 0.04
    for axis, wall_m in ((0, 3.0), (0, -3.0), (1, 2.0), (1, -2.0)):
        other = above[np.abs(above[:, 1 - axis]) < 0.8]
        near = other[np.abs(other[:, axis] - wall_m) < 0.1, axis]
        assert np.median(near) == pytest.approx(wall_m, abs=0.01)


def test_floor_height_and_objects_are_reported(fused: Fused) -> None:
    made, scene = fused
    assert made.floor_z_m == pytest.approx(0.0, abs=0.005)
    assert set(made.objects) == {"crate", "vase"}
    assert made.unseen == ()
    assert made.notes == ()
    assert {asset.object for asset in scene.file.assets} == {None, "crate", "vase"}
    assert [room.id for room in scene.rooms] == ["room"]
    assert scene.view_points["crate"]


def test_there_is_floor_wherever_a_robot_may_stand(fused: Fused) -> None:
    _, scene = fused
    built = build_model(scene)
    data = mujoco.MjData(built.model)
    mujoco.mj_kinematics(built.model, data)
    # On the lines between cells, too, where two pieces of floor meet.
    for x_m in np.arange(-2.5, 2.5, 0.0125 * 17):
        for y_m in np.arange(-1.5, 1.5, 0.0125 * 9):
            assert has_floor(built.model, data, SOLID, float(x_m), float(y_m))


def test_an_episode_runs_in_it_and_ends_at_its_wall(fused: Fused, tmp_path: Path) -> None:
    (log,) = survey(tmp_path, fused[1], [SE2(0.0, 0.3, 0.0)], [F] * 14)
    with LogReader(log) as reader:
        assert reader.end is not None
        assert reader.end.reason is EndReason.STOP
        steps = list(reader.steps())
    assert steps[-2].result is not None
    assert steps[-2].result.outcome is Outcome.CONTACT
    assert steps[-2].referee.pose.x_m == pytest.approx(3.0 - 0.18, abs=0.04)
    assert np.median(steps[0].frame.depth_m[50:70, 70:90]) == pytest.approx(3.0, abs=0.03)
    # Photographed surfaces come out as bright as they were.
    assert 60 < steps[0].frame.rgb[50:70, 70:90].mean() < 250


@pytest.mark.slow
def test_the_same_logs_make_the_same_bytes(room_logs: list[Path], tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        build_scene(FrameSequence(room_logs[:1]), folder, FusionOptions(voxel_m=0.06, view_points=False))
    files = [{p.name: p.read_bytes() for p in sorted((folder / "assets").iterdir())} for folder in folders]
    assert files[0] == files[1]
    assert load_scene(folders[0]).map.to_pgm() == load_scene(folders[1]).map.to_pgm()


@pytest.mark.slow
def test_noise_moves_walls_by_millimeters(room: Scene, tmp_path: Path) -> None:
    noisy = {"camera": {"depth_noise": {"model": "redwood"}}}
    logs = survey(tmp_path / "logs", room, [SE2(0.4, -0.6, 1.0)], [L] * 11, noisy)
    build_scene(FrameSequence(logs, max_depth_m=3.0), tmp_path / "lab", FusionOptions(view_points=False))
    scene = load_scene(tmp_path / "lab")
    corners = np.concatenate([t.reshape(-1, 3) for t in visual_triangles(scene.folder, scene.file)])
    off_m = surface_distance_m(corners[corners[:, 2] > 0.1])
    assert np.median(off_m) < 0.02


def test_a_map_needs_no_mesh_library(
    room_logs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load = importlib.import_module

    def without(name: str, package: str | None = None) -> object:
        if name == "open3d":
            raise ModuleNotFoundError("No module named 'open3d'", name="open3d")
        return load(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    with raises_naming(ConfigError, "Open3D", "robot-runtime[mesh]"):
        build_scene(FrameSequence(room_logs[:1]), tmp_path / "lab")
    out = tmp_path / "map"
    assert run_command(["scene", "from-log", str(room_logs[0]), "--out", str(out), "--no-mesh"]) == 0
    assert "m² free" in capsys.readouterr().out
    assert not load_scene(out).file.assets


# --- bad input ------------------------------------------------------------------------------------------------------


def test_logs_of_two_maps_are_refused(room_logs: list[Path], room: Scene, tmp_path: Path) -> None:
    other = replace(room, map=replace(room.map, origin_x_m=room.map.origin_x_m + 1.0), digest="f" * 64)
    log = rewritten(room_logs[1], tmp_path, header={"scene": other})
    with raises_naming(SceneError, "ffffffffffff", log):
        FrameSequence([room_logs[0], log])


def _elsewhere(record: StepRecord) -> StepRecord:
    return replace(record, referee=replace(record.referee, frame="odom"))


def _placeless(record: StepRecord) -> StepRecord:
    covariance = np.diag([1.0, 1.0, math.inf])
    return replace(record, referee=replace(record.referee, covariance=covariance))


def _blind(record: StepRecord) -> StepRecord:
    return replace(record, frame=replace(record.frame, depth_m=np.zeros_like(record.frame.depth_m)))


@pytest.mark.parametrize(
    ("spoil", "named"), [(_elsewhere, "'odom'"), (_placeless, "--poses smoothed"), (_blind, "4 m")]
)
def test_logs_without_poses_or_depth_are_refused(
    spoil: Callable[[StepRecord], StepRecord], named: str, room_logs: list[Path], tmp_path: Path
) -> None:
    log = rewritten(room_logs[0], tmp_path, spoil)
    with raises_naming(RecordingError, log, named):
        list(FrameSequence([log]))


def test_a_torn_log_gives_its_whole_frames(room_logs: list[Path], tmp_path: Path) -> None:
    torn = tmp_path / "torn.mcap"
    whole = room_logs[0].read_bytes()
    torn.write_bytes(whole[: len(whole) * 3 // 5])
    frames = FrameSequence([torn])
    assert 3 < len(list(frames)) < 24
    assert any("torn" in note for note in frames.notes)


def test_too_little_free_floor_is_refused(room_logs: list[Path], tmp_path: Path) -> None:
    options = FusionOptions(MappingOptions(observations=90), None)
    with raises_naming(SceneError, room_logs[0].stem, "m²", "90", "--min-observations"):
        build_scene(FrameSequence(room_logs[:1]), tmp_path / "lab", options)
    assert not (tmp_path / "lab").exists()


@pytest.mark.parametrize("options", [{"resolution_m": 0.001}, {"observations": 0}])
def test_invalid_mapping_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        MappingOptions(**options)  # type: ignore[arg-type]


def test_a_folder_that_is_no_scene_is_not_overwritten(room_logs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    with raises_naming(SceneError, tmp_path):
        build_scene(FrameSequence(room_logs[:1]), tmp_path, FusionOptions(voxel_m=None))


# --- parts ----------------------------------------------------------------------------------------------------------


def test_pixels_between_two_surfaces_do_not_count() -> None:
    depth_m = np.full((5, 7), 1.0, np.float32)
    depth_m[:, 4:] = 3.0
    depth_m[:, 3] = 2.0  # a mixture of both sides
    depth_m[2, 5] = np.nan
    clean = reliable(depth_m, max_depth_m=2.5)
    assert (clean[:, :3] == 1.0).all()
    assert (clean[:, 3:] == 0.0).all()


@settings(max_examples=25)
@given(color=st.tuples(*(st.integers(0, 255) for _ in range(3))))
def test_every_color_is_in_the_palette(color: tuple[int, int, int]) -> None:
    (u, v), *_ = palette_uv(np.array([color], np.uint8))[0]
    image = np.asarray(palette())
    pixel = image[int((1 - v) * image.shape[0]), int(u * image.shape[1])]
    assert np.abs(pixel.astype(int) - color).max() <= 4


def test_a_scan_keeps_the_colors_of_its_corners(tmp_path: Path) -> None:
    box = trimesh.creation.box((4.0, 3.0, 2.4))
    box.visual.vertex_colors = [(200, 40, 40, 255) if z > 0 else (40, 40, 200, 255) for _, _, z in box.vertices]
    box.export(tmp_path / "scan.ply")
    (part,) = load_mesh(tmp_path / "scan.ply", [])
    assert part.appearance.exact
    assert part.uv is not None
    low = part.corners[..., 2].max(axis=1) < 0
    image = np.asarray(part.appearance.image)
    u, v = part.uv[low][0, 0]
    assert image[int((1 - v) * image.shape[0]), int(u * image.shape[1])].tolist() == pytest.approx([40, 40, 200], abs=4)


def test_stairs_are_occupied_and_have_no_floor() -> None:
    """Space below the floor, seen from two places."""
    options = MappingOptions(resolution_m=0.05)
    voxels = VoxelGrid(np.array([[0.0, 0.0, 0.9], [0.2, 0.0, 0.9]]), 3.0, options)
    pinhole = Intrinsics.from_hfov(160, 120, 79.0)
    rays = Lens.of(pinhole).pixel_rays()
    for x_m in (0.0, 0.2):
        pose = transform((x_m, 0.0, 0.9), optical_axes(0.0, -0.6))
        directions = rays @ pose[:3, :3].T
        with np.errstate(divide="ignore"):
            floor_m = np.where(directions[..., 2] < 0, -0.9 / directions[..., 2], 0.0)
            below_m = np.where(directions[..., 2] < 0, -1.9 / directions[..., 2], 0.0)
        ends_m = 1.2 - x_m  # where the floor ends, seen from here
        depth_m = np.where(floor_m * directions[..., 0] < ends_m, floor_m, below_m)
        depth_m = np.where(depth_m < 4.0, depth_m, 0.0).astype(np.float32)
        frame = PosedFrame(Path("log"), 0, np.zeros((120, 160, 3), np.uint8), depth_m, pinhole, pose, SE2(x_m, 0.0))
        voxels.add(frame, frame.points()[0])
    occupancy = voxels.occupancy()
    assert occupancy.cells[occupancy.to_cell(0.9, 0.0)] == Cell.FREE
    beyond = occupancy.to_cell(1.6, 0.0)
    assert occupancy.cells[beyond] == Cell.OCCUPIED
    assert voxels.drops(occupancy)[beyond]
