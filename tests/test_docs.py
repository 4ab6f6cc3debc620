"""The commands in the docs do what the docs say: every ``console`` block runs, page by page, in order.

A line that starts with ``$ `` is a command; it must exit with 0. A block fenced as ``python file=NAME`` or
``yaml file=NAME`` is written to that file first, as the reader would. Blocks of any other kind are not run; those of
``console frameworks`` run in ``tests/frameworks``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs_pages import PAGES, ROOT, run_page, steps

DRIVERS = ("own_base.py", "own_camera.py")
"""Examples that are no programs, with tests of their own."""

EXAMPLES = sorted(
    {*(ROOT / "docs" / "examples").glob("*.py")} - {ROOT / "docs" / "examples" / name for name in DRIVERS}
)
_LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#]+)")


PAGES_WITH_COMMANDS = [page for page in PAGES if any(name == "run" for name, _ in steps(page))]
LONG = (
    "tutorials/habitat-policy.md",
    "tutorials/real-episodes-in-simulation.md",
    "how-to/logs-and-scores.md",
    "how-to/replay.md",
    "how-to/localization.md",
    "devices/azure-kinect.md",
    "tasks/rearrangement.md",
    "tasks/objectnav.md",
    "how-to/gap.md",
    "how-to/noise-models.md",
    "how-to/reconstruction.md",
)
"""Pages of a dozen seconds or more whose commands other tests run, too; left to ``make test-all``."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.exhaustive) if str(page).endswith(LONG) else page
        for page in PAGES_WITH_COMMANDS
    ],
    ids=lambda page: str(page.relative_to(ROOT / "docs")),
)
def test_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, steps(page), tmp_path, [Path(sys.executable).parent])


@pytest.mark.slow
def test_the_program_on_the_first_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(("reached", "contact"))


@pytest.mark.slow
@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.name)
def test_an_example_program_runs(program: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.name)
def test_an_example_program_uses_public_names_alone(program: Path) -> None:
    imports = re.findall(r"^\s*(?:from|import) +(robot_runtime\S*)", program.read_text(encoding="utf-8"), re.MULTILINE)
    assert imports == ["robot_runtime"]


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in _LINK.finditer(page.read_text(encoding="utf-8")):
        assert (page.parent / link["target"]).exists(), f"{page.name}: {link['target']}"
