"""Guidance of a person through a capture, and refusals before it begins."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from board_scene import TRUE, held, picture
from numpy.typing import NDArray
from PIL import Image
from raising import raises_naming
from rich.console import Console

from calibration.camera import intrinsics
from calibration.camera.charuco import Board
from calibration.camera.raw_images import require_depth
from calibration.camera.tagged_site import MOVES, describe_moves
from calibration.operator_guide import Guide
from robot_runtime.cli.main import run_command
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Camera, CameraInfo, Intrinsics, Mount, RgbdFrame, Robot
from robot_runtime.robots.loader import RobotContext, load_robot

BOARD = Board()


class Pictures(Camera):
    """Shows pictures one after the other, then the last one for ever."""

    def __init__(self, robot: Robot, shown: Sequence[NDArray[np.uint8]]) -> None:
        self._clock, self._shown, self.taken = robot.clock, shown, 0
        pinhole = Intrinsics(TRUE.width, TRUE.height, TRUE.fx, TRUE.fy, TRUE.cx, TRUE.cy)
        self._info = CameraInfo(pinhole, Mount(0, 0, 0.5), 30.0, 0.1, 5.0, 0.001, has_semantic=False, has_depth=False)

    @property
    def info(self) -> CameraInfo:
        return self._info

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        rgb = self._shown[min(self.taken, len(self._shown) - 1)]
        self.taken += 1
        self._clock.sleep(1 / 30)
        return RgbdFrame(self._clock.now_ns(), rgb, np.zeros(rgb.shape[:2], np.float32))


def robot(shown: Sequence[NDArray[np.uint8]]) -> Robot:
    made = load_robot("fake", RobotContext(None, None, 0))
    return replace(made, camera=Pictures(made, shown))


def guide(folder: Path | None = None) -> tuple[Guide, io.StringIO]:
    words = io.StringIO()
    return Guide(Console(file=words, width=200), folder, attended=False), words


@pytest.mark.slow
def test_views_are_taken_when_the_board_rests_and_is_elsewhere(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    first, second = held(-0.05, 0, 0.5, 0.3, 0.2), held(0.06, 0.02, 0.5, -0.3, 0.1)
    moving = [held(-0.05 + 0.02 * n, 0, 0.5, 0.3, 0.2) for n in range(1, 4)]
    shown = [picture(TRUE, BOARD, pose, random) for pose in (first, first, first, *moving, second, second)]
    led, words = guide(tmp_path)
    with robot(shown) as made:
        taken = intrinsics.collect(made, led, BOARD, wanted=2, time_limit_s=10)
        assert len(taken) == 2
        assert made.camera.taken == 8  # type: ignore[attr-defined]
    assert "Hold it still" in words.getvalue()
    assert "2 of 2" in words.getvalue()
    for name in ("live.png", "coverage.png"):
        assert cv2.imread(str(tmp_path / name)).shape == (360, 480, 3)
    assert {path.name for path in tmp_path.iterdir()} == {"live.png", "coverage.png"}


def test_time_runs_out_without_a_board() -> None:
    with robot([np.full((90, 120, 3), 100, np.uint8)]) as made, raises_naming(CalibrationFailed, "9x6"):
        intrinsics.collect(made, guide()[0], BOARD, wanted=2, time_limit_s=0.2)


def test_nobody_at_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    led = Guide(Console(file=io.StringIO()), None, attended=True)
    with raises_naming(CalibrationFailed, "terminal"):
        led.ask("Put up the tags")


def test_somebody_at_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    words = io.StringIO()
    led = Guide(Console(file=words, width=200), None, attended=True)
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    led.ask("Put up the tags")
    assert "Put up the tags, then press Enter" in words.getvalue()
    with pytest.raises(CalibrationFailed):  # its end: the terminal was closed
        led.ask("Go on")


def test_a_camera_without_depth_is_told_apart() -> None:
    with raises_naming(CalibrationFailed, "depth", "--from tags"):
        require_depth(robot([]).camera)


def test_moves_are_told_beforehand() -> None:
    assert describe_moves(MOVES) == "turn left by 30°, turn right by 60°, turn left by 30°, drive 0.25 m"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["intrinsics", "--board", "9"], "--board '9'"),
        (["extrinsics", "--from", "above"], "--from 'above'"),
        (["extrinsics", "--floor-tags", "9-0"], "--floor-tags '9-0'"),
        (["extrinsics", "--mount", "nowhere"], "'nowhere'"),
        (["depth", "--tag-m", "20"], "--tag-m 20"),
        (["tilt-servo", "--valid-days", "0"], "--valid-days 0"),
        (["depth", "--robot", "none"], "'none'"),
    ],
)
def test_bad_options_are_refused_before_anything_moves(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["calibrate", *arguments, "--out", str(tmp_path / "x.yaml")]) == 2
    assert words in capsys.readouterr().err


def test_a_file_is_not_replaced_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.yaml"
    out.write_text("mine")
    assert run_command(["calibrate", "extrinsics", "--from", "floor", "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_text() == "mine"


def test_a_board_knows_its_size_in_print(tmp_path: Path) -> None:
    out = tmp_path / "board.png"
    assert (
        run_command(
            ["calibrate", "board", "--out", str(out), "--board", "5x4", "--square-m", "0.02", "--marker-m", "0.015"]
        )
        == 0
    )
    with Image.open(out) as image:
        dpi = image.info["dpi"][0]
        assert image.width / dpi * 25.4 == pytest.approx(100, rel=1e-3)
    assert Board(5, 4, 0.02, 0.015).detect(np.asarray(Image.open(out).convert("RGB"))) is not None
