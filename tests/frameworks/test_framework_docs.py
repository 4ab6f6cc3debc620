"""The commands in the docs that need somebody else's framework do what the docs say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from docs_pages import PAGES, ROOT, run_page, steps

KIND = "console frameworks"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if KIND in page.read_text(encoding="utf-8")], ids=lambda page: page.stem
)
def test_commands_of_a_page_run_beside_its_framework(page: Path, tmp_path: Path) -> None:
    run_page(page, steps(page, KIND), tmp_path, [Path(sys.executable).parent, ROOT / ".venv" / "bin"])
