"""The picture of an earlier run's start over the live image."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from robot_runtime.campaign.ledger import OVERLAY
from robot_runtime.campaign.placing import StartPicture, blend
from robot_runtime.errors import DeviceFault


class Camera:
    """A camera that shows one brightness."""

    def __init__(self) -> None:
        self.brightness, self.broken, self.captures = 200, False, 0

    def capture(self, since_ns: int, timeout_s: float) -> Any:
        self.captures += 1
        if self.broken:
            raise DeviceFault("the camera is unplugged", "plug it in")
        return SimpleNamespace(rgb=np.full((6, 8, 3), self.brightness, np.uint8))


@pytest.fixture
def camera() -> Camera:
    return Camera()


def placing(camera: Camera, folder: Path, reference: Path | None) -> StartPicture:
    picture = StartPicture(SimpleNamespace(camera=camera))  # type: ignore[arg-type]
    picture.write_to(folder, reference)
    return picture


def shown(folder: Path) -> np.ndarray[Any, Any]:
    with Image.open(folder / OVERLAY) as image:
        return np.asarray(image)


def test_the_first_runs_start_lies_half_and_half_over_the_live_image(tmp_path: Path, camera: Camera) -> None:
    first = np.zeros((6, 8, 3), np.uint8)
    first[:, :4] = (100, 0, 50)
    Image.fromarray(first).save(tmp_path / "first.png")
    picture = placing(camera, tmp_path, tmp_path / "first.png")
    picture.show(0, None, "")
    assert np.array_equal(shown(tmp_path), blend(first, np.full((6, 8, 3), 200, np.uint8)))
    assert shown(tmp_path)[0, 0].tolist() == [150, 100, 125]
    assert shown(tmp_path)[0, 7].tolist() == [100, 100, 100]


def test_a_picture_of_another_size_is_fitted(camera: Camera) -> None:
    assert (
        blend(np.full((60, 80, 3), 100, np.uint8), np.full((6, 8, 3), 200, np.uint8)).tolist() == [[[150] * 3] * 8] * 6
    )


def test_it_follows_the_live_image_twice_a_second(tmp_path: Path, camera: Camera) -> None:
    Image.fromarray(np.zeros((6, 8, 3), np.uint8)).save(tmp_path / "first.png")
    picture = placing(camera, tmp_path, tmp_path / "first.png")
    for now_ns in (0, 100_000_000, 499_999_999):
        picture.show(now_ns, None, "")
    assert camera.captures == 1
    camera.brightness = 40
    picture.show(500_000_000, None, "")
    assert shown(tmp_path).max() == 20


def test_without_an_earlier_run_or_a_camera_the_placement_goes_on(tmp_path: Path, camera: Camera) -> None:
    placing(camera, tmp_path, None).show(0, None, "")
    assert camera.captures == 0
    camera.broken = True
    Image.fromarray(np.zeros((6, 8, 3), np.uint8)).save(tmp_path / "first.png")
    placing(camera, tmp_path, tmp_path / "first.png").show(0, None, "")
    assert camera.captures == 1
    assert not (tmp_path / OVERLAY).exists()
