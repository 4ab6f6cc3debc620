"""Limits on what the loop of an episode loads, and the counting of the other measures."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.structure import kinds, language, tree
from tests.structure.measures import MEASURES


@pytest.mark.parametrize(
    "name", ["env-modules", "env-lines", "env-downstream", pytest.param("run-lines", marks=pytest.mark.slow)]
)
def test_reach(name: str) -> None:
    value, limit = MEASURES[name].measure(), MEASURES[name].limit
    assert value.count <= limit, "\n".join(value.items)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only file of a product of its own."""
    path = tmp_path / "robot_runtime" / "module.py"
    path.parent.mkdir()
    monkeypatch.setattr(tree, "ROOT", tmp_path)
    return path


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("same = self._task.kind == 'eqa'", 1),
        ("same = header.task.kind not in GROUP", 1),
        ("same = own.task.kind == other.task.kind", 0),
        ("same = task.kind in self.kinds", 0),
        ("same = stream.kind == 'depth'", 0),
    ],
)
def test_comparisons_are_counted(line: str, count: int, module: Path) -> None:
    module.write_text(line)
    assert len(kinds.comparisons()) == count


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("TABLE = {'eqa': object}", 1),
        ("TABLE: dict[str, str] = {'held': 'a', 'phase': 'b'}", 1),
        ("class Rules:\n    rule: Literal['distance', 'visible'] = 'distance'", 1),
        ("FORMATS = (robothor, formats.r2r_ce)", 1),
        ("SENSORS = {'rgb': 1, 'depth': 2}", 0),
        ("Mode = Literal['wheels', 'time']", 0),
    ],
)
def test_tables_are_counted(line: str, count: int, module: Path) -> None:
    module.write_text(line)
    assert len(kinds.closed_tables()) == count


def test_fragments_are_counted(module: Path) -> None:
    parameters = ("path: of the log.", "out, log: likewise.", "name: offset of it.")
    module.write_text('"""Text.\n\n    Args:\n        ' + "\n        ".join(parameters) + '\n"""\n')
    assert [place.rpartition(":")[2] for place in language.fragments()] == ["4", "5"]
    assert ast.get_docstring(tree.parsed(module)) is not None
