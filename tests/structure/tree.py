"""Source files of the product and the words that its kinds of task own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("robot_runtime", "drivers", "calibration", "sim_bridge")
KINDS_FOLDER = ROOT / "robot_runtime/task_kinds"

KINDS = frozenset(("pointnav", "objectnav", "areagoal", "vln", "eqa", "rearrangement"))


def product_files() -> list[Path]:
    """Python files of the product's packages, in order of their paths."""
    return sorted(path for package in PRODUCT for path in (ROOT / package).rglob("*.py"))


def documented_files() -> list[Path]:
    """Python files of the repository outside ``tests``: product, examples of the documentation, ROS nodes."""
    others = (path for folder in ("docs", "ros_ws/src") for path in (ROOT / folder).rglob("*.py"))
    return [*product_files(), *sorted(others)]


def outside_kinds(path: Path) -> bool:
    """Whether a file belongs to the layers that may not know a kind of task."""
    return KINDS_FOLDER not in path.parents


@cache
def text(path: Path) -> str:
    """Content of a file."""
    return path.read_text(encoding="utf-8")


@cache
def parsed(path: Path) -> ast.Module:
    """Syntax tree of a file."""
    return ast.parse(text(path), str(path))


def nodes(paths: list[Path]) -> Iterator[tuple[Path, ast.AST]]:
    """All nodes of the syntax trees of files."""
    for path in paths:
        for node in ast.walk(parsed(path)):
            yield path, node


def lines_of(path: Path) -> int:
    """Number of line ends in a file, as ``wc -l`` counts them."""
    return text(path).count("\n")


def place(path: Path, line: int) -> str:
    """``path:line``, relative to the repository."""
    return f"{path.relative_to(ROOT)}:{line}"
