"""The table of the five papers in the documentation names tests that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


TABLE = [
    cells(line)
    for line in (ROOT / "docs/tasks/papers.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| §")
]


@pytest.mark.parametrize("row", TABLE, ids=[f"{row[0]} {row[1]}" for row in TABLE])
def test_what_is_called_implemented_is_run_by_a_test(row: list[str]) -> None:
    _, _, state, missing, _, test = row
    assert state in ("yes", "differs", "no")
    assert missing or state == "yes"
    if state == "yes":
        assert test
    if test:
        file, name = test.strip("`").split("::")
        (path,) = (ROOT / "tests").rglob(file)
        assert f"def {name}(" in path.read_text(encoding="utf-8")
