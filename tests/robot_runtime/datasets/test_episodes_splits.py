"""The split is told by the path, as published datasets lay their files out."""

from __future__ import annotations

import pytest

from robot_runtime.datasets.splits import split_of


@pytest.mark.parametrize(
    ("dataset", "split"),
    [
        ("data/objectnav/hm3d/v2/val_mini/val_mini.json.gz", "val_mini"),
        ("data/objectnav/mp3d/v1/val/content/x8F5xyUWy9e.json.gz", "val"),
        ("R2R_VLNCE_v1-3/val_unseen/val_unseen.json.gz", "val_unseen"),
        ("robothor/dataset/test/episodes/FloorPlan_test-challenge1_1.json.gz", "test"),
        ("robothor/dataset/val/episodes", "val"),
        ("test-std.json", "test-std"),
        ("my_flat.yaml", ""),
        ("training_day.json.gz", ""),
        ("", ""),
    ],
)
def test_split_of(dataset: str, split: str) -> None:
    assert split_of(dataset) == split
