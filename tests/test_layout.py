"""Limits that keep the code base easy to enter: few loose modules, short files, plain openings, true pictures."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("robot_runtime", "drivers", "calibration", "sim_bridge")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
RELATIVE = re.compile(r"(What|Where|Who|Whose|How|Which|When|Whether) ")


@pytest.mark.parametrize(("package", "most"), [("robot_runtime", 10), ("sim_bridge", 4)])
def test_a_package_has_few_loose_modules(package: str, most: int) -> None:
    assert len(list((ROOT / package).glob("*.py"))) <= most


def test_no_file_is_longer_than_450_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > 450} == {}


@pytest.mark.slow
def test_module_docstrings_open_with_a_noun_phrase() -> None:
    docstrings = {path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in FILES}
    assert [str(path.relative_to(ROOT)) for path, text in docstrings.items() if RELATIVE.match(text)] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def test_the_picture_of_layers_shows_the_contract() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = re.search(r'containers = \["robot_runtime"\].*?layers = \[(.*?)\]', text, re.DOTALL)
    assert contract is not None
    layers = [re.findall(r"\w+", line) for line in re.findall(r'"(.*?)"', contract[1])]
    units = {unit for layer in layers for unit in layer} - {"__main__"}
    drawn = re.findall(
        r">(\w+)(?:/|\.py)</text>", (ROOT / "docs" / "images" / "layers.svg").read_text(encoding="utf-8")
    )
    assert units == set(drawn) - set(PACKAGES)
