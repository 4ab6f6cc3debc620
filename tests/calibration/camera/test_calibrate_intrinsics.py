"""A lens from views of a board, against the lens that drew them; and views that say too little."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from board_scene import FACTORY, TRUE, held, picture, views
from raising import raises_naming
from rich.console import Console

from calibration.camera.charuco import Board
from calibration.camera.intrinsics import BoardView, IntrinsicsProcedure, in_view
from calibration.operator_guide import Guide
from calibration.procedure import Procedure, calibrate
from robot_runtime.errors import CalibrationFailed, ConfigError, ForeignCalibration
from robot_runtime.hal import Robot
from robot_runtime.imaging.rig import load_calibration
from robot_runtime.robots.loader import RobotContext, load_robot

BOARD = Board()
PROCEDURE = IntrinsicsProcedure(BOARD, 24, 10.0)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def good() -> list[BoardView]:
    random = np.random.default_rng(3)
    return views(BOARD, [in_view(TRUE, BOARD, number, random) for number in range(26)])


@pytest.fixture
def robot() -> Robot:
    return load_robot("fake", RobotContext(None, None, 0))


def guide(folder: Path | None = None) -> Guide:
    return Guide(Console(file=io.StringIO()), folder, attended=False)


class Recorded(IntrinsicsProcedure):
    """The procedure, on views that were taken before."""

    def __init__(self, taken: list[BoardView]) -> None:
        super().__init__(BOARD, len(taken), 10.0)
        self._taken = taken

    def record(self, robot: Robot, guide: Guide) -> list[BoardView]:
        return self._taken


def test_the_lens_is_found_and_the_factory_judged(good: list[BoardView], robot: Robot, tmp_path: Path) -> None:
    procedure: Procedure = Recorded(good)
    out = tmp_path / "lens.yaml"
    file = calibrate(procedure, robot, guide(tmp_path / "view"), out, 30)
    found = load_calibration(out, robot.name, "SN1").color
    assert found.fx == pytest.approx(TRUE.fx, rel=0.003)
    assert found.fy == pytest.approx(TRUE.fy, rel=0.003)
    # Over the middle of the image, rays agree; a shift of the center is a turn of the camera.
    pixels = np.stack(np.meshgrid(np.linspace(60, 420, 9), np.linspace(45, 315, 7)), axis=-1)
    off = found.rays(pixels)[..., :2] - TRUE.rays(pixels)[..., :2]
    assert np.linalg.norm(off - off.mean(axis=(0, 1)), axis=-1).max() * TRUE.fx < 0.5
    held_out = file.stamp.held_out
    assert held_out["reprojection_px"] < 0.15
    assert held_out["factory_reprojection_px"] > 1.5 * held_out["reprojection_px"]
    assert held_out["focal_difference_pct"] == pytest.approx(100 * (1 - TRUE.fx / FACTORY.fx), abs=0.5)
    assert (tmp_path / "view" / "residuals.png").stat().st_size > 1000
    with raises_naming(ForeignCalibration, "'SN2'"):
        load_calibration(out, robot.name, "SN2")


def test_too_few_views(good: list[BoardView]) -> None:
    with raises_naming(CalibrationFailed, "7 views", "--views"):
        PROCEDURE.solve(good[:7])


def test_a_corner_of_the_image_is_not_enough(good: list[BoardView]) -> None:
    left = [view for view in good if view.corners.pixels[:, 0].max() < 330]
    poses = [held(-0.12, -0.08, 0.6, 0.1 * n, 0.3 * (-1) ** n) for n in range(9)]
    with raises_naming(CalibrationFailed, "50 %", "--view"):
        PROCEDURE.solve([*left[:2], *views(BOARD, poses)][:10])


def test_a_board_that_is_never_tilted_does_not_tell_the_focal_length() -> None:
    places = [(x, y) for x in (-0.14, 0.0, 0.14) for y in (-0.1, 0.0, 0.1)]
    level = views(BOARD, [held(x, y, 0.45, 0.01 * n, 0.0) for n, (x, y) in enumerate(places)])
    with raises_naming(CalibrationFailed, "tilt", "capture again"):
        PROCEDURE.solve(level)


def test_a_board_that_is_tilted_to_one_side_does_not_either() -> None:
    places = [(x, y) for x in (-0.14, 0.0, 0.14) for y in (-0.1, 0.0, 0.1)]
    one_side = views(BOARD, [held(x, y, 0.45, 0.5, 0.1) for x, y in places])
    with raises_naming(CalibrationFailed, "tilt", "capture again"):
        PROCEDURE.solve(one_side)


def test_views_of_a_bent_board_fail_on_what_was_held_out(good: list[BoardView], robot: Robot, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for view in (bent := [BoardView(type(v.corners)(v.corners.ids, v.corners.pixels.copy()), v.view) for v in good]):
        view.corners.pixels[:] += random.normal(0, 3.0, view.corners.pixels.shape)
    with pytest.raises(CalibrationFailed):
        calibrate(Recorded(bent), robot, guide(), tmp_path / "lens.yaml", 30)
    assert not (tmp_path / "lens.yaml").exists()


def test_a_larger_board_than_stated_is_noticed() -> None:
    larger = Board(11, 8)
    rgb = picture(TRUE, larger, held(0, 0, 0.6, 0.2, 0.2), np.random.default_rng(0))
    with raises_naming(CalibrationFailed, "9x6", "--board"):
        BOARD.detect(rgb)


def test_no_board_no_corners() -> None:
    assert BOARD.detect(np.full((120, 160, 3), 128, np.uint8)) is None


@pytest.mark.parametrize(
    "arguments", [("9", 40, 30), ("2x6", 40, 30), ("30x30", 40, 30), ("9x6", 30, 40), ("9x6", 4000, 30)]
)
def test_impossible_boards_are_refused(arguments: tuple[str, float, float]) -> None:
    with pytest.raises(ConfigError):
        Board.named(*arguments)
