"""The page of files that are read: kinds of files, the files beside them, and ranges of numbers with units."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from robot_runtime.common import quantities
from robot_runtime.datasets.formats import usable_formats
from robot_runtime.tasks.task import Task

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module")
def page() -> str:
    pytest.importorskip("mkdocs", reason="the documentation's packages are not installed")
    sys.path.insert(0, str(DOCS))
    try:
        specification = importlib.util.spec_from_file_location("files_page_hooks", DOCS / "hooks.py")
        assert specification is not None
        assert specification.loader is not None
        hooks = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(hooks)
    finally:
        sys.path.remove(str(DOCS))
    return "\n".join(hooks._yaml_files())


def test_it_has_every_format_and_the_files_beside_it(page: str) -> None:
    for item in usable_formats():
        (row,) = re.findall(rf"^\| {re.escape(item.title)} \|.*$", page, re.MULTILINE)
        assert all(path.name in row for path in item.companions(Path("val.json.gz")))
    for name in ("view_points.json", "tags.yaml", "dist-model.txt", "NAME.evidence.yaml"):
        assert f"`{name}`" in page


def test_it_has_every_key_that_names_a_file(page: str) -> None:
    for key, owner in (
        *(("map", "SceneFile"), ("image", "MapFile"), ("mesh", "Visual"), ("mesh", "Collision")),
        *(("texture", "Material"), ("odometry", "RobotFile"), ("motors", "RobotFile"), ("tilt_servo", "RobotFile")),
        *(("calibration", "ImagingOptions"), ("mount", "ImagingOptions"), ("latency", "ImagingOptions")),
        *(("alignment", "MarvelmindOptions"), ("tags", "AprilTagOptions"), ("distortion", "RedwoodOptions")),
    ):
        assert re.search(rf"^\| `{key}` \| [^|]*`{owner}` \| \S", page, re.MULTILINE), (key, owner)
    assert "`sha256` |" not in page.partition("## Files that a file names")[2].partition("\n## ")[0]


def test_it_has_the_range_of_every_number_with_a_unit(page: str) -> None:
    for name, (kind, _) in quantities.quantities_of(Task).items():
        if kind is not None:
            assert f"| `{name}` | {kind.name} | {kind.low:g} to {kind.high:g}" in page
