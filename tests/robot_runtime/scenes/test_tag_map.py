"""Tag maps: what they say, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.errors import ConfigError
from robot_runtime.scenes.tag_map import TAG_COUNT, Tag, TagMap, find_tag_map, load_tag_map, tag_image, write_tag_map

GOOD = {"id": 3, "size_m": 0.16, "xyz_m": [1.0, 2.0, 1.1], "rpy_deg": [0.0, 0.0, 90.0]}

ANGLE = st.floats(-180, 180)


def write(path: Path, *tags: dict, **more: object) -> Path:
    path.write_text(yaml.safe_dump({"schema": 1, "family": "tag36h11", "tags": list(tags), **more}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ((), "at least one tag"),
        ((GOOD, GOOD), "tag 3 is there twice"),
        (({**GOOD, "size_m": 160.0},), "160 m is not a possible edge"),
        (({**GOOD, "size_m": 0.0},), "0 m is not a possible edge"),
        (({**GOOD, "id": TAG_COUNT},), f"0 to {TAG_COUNT - 1}, got {TAG_COUNT}"),
        (({**GOOD, "id": -1},), "got -1"),
        (({**GOOD, "xyz_m": [1.0, 2.0]},), "tags.0.xyz_m"),
        (({**GOOD, "xyz_m": [1.0, 2.0, float("nan")]},), "tags.0.xyz_m"),
        (({**GOOD, "facing": 90},), "tags.0.facing"),
    ],
)
def test_a_bad_map_is_refused_naming_file_and_tag(tmp_path: Path, tags: tuple[dict, ...], words: str) -> None:
    path = write(tmp_path / "lab.yaml", *tags)
    with pytest.raises(ConfigError) as refused:
        load_tag_map(path)
    assert str(path) in refused.value.message
    assert words in refused.value.message
    assert refused.value.remedy


def test_another_family_is_refused(tmp_path: Path) -> None:
    with raises_naming(ConfigError, "family"):
        load_tag_map(write(tmp_path / "lab.yaml", GOOD, family="tag25h9"))


def test_a_map_that_is_not_there_is_named(tmp_path: Path) -> None:
    with raises_naming(ConfigError, "none.yaml"):
        find_tag_map(str(tmp_path / "none.yaml"), None, "options: tags")
    with raises_naming(ConfigError, "scene"):
        find_tag_map("scene", None, "options: tags")


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20), ANGLE), min_size=1, max_size=4), st.floats(0.02, 1.0))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, places: list, size_m: float) -> None:
    tags = [
        Tag(i, size_m, (x, y, 1.0), (0.0, yaw / 2, yaw), looks=i, rms_px=0.1) for i, (x, y, yaw) in enumerate(places)
    ]
    written = TagMap(1, "tag36h11", tuple(tags), {"date": "2026-01-01", "rms_px": 0.12})
    path = tmp_path_factory.mktemp("maps") / "tags.yaml"
    write_tag_map(path, written)
    assert load_tag_map(path) == written


def test_corners_run_from_the_lower_left_against_the_clock_as_the_viewer_sees_them() -> None:
    # It faces +x and hangs upright: who looks along -x has +y to the right.
    corners = Tag(0, 0.2, (5.0, 0.0, 1.0)).corners
    np.testing.assert_allclose(corners, [(5, -0.1, 0.9), (5, 0.1, 0.9), (5, 0.1, 1.1), (5, -0.1, 1.1)], atol=1e-12)


def test_a_picture_has_a_white_rim_around_a_black_one() -> None:
    cells = tag_image(17)
    assert cells.shape == (10, 10)
    assert (cells[[0, -1]] == 255).all()
    assert (cells[:, [0, -1]] == 255).all()
    assert (cells[1, 1:-1] == 0).all()
    assert (cells[1:-1, -2] == 0).all()
    assert len({tag_image(number).tobytes() for number in range(0, TAG_COUNT, 7)}) == len(range(0, TAG_COUNT, 7))
    with pytest.raises(ValueError, match="0 to 586"):
        tag_image(TAG_COUNT)
