"""Tests of what works beside other people's frameworks. They run in .venv-frameworks, where nothing is skipped::

    .venv-frameworks/bin/python -m pytest tests/frameworks

What the frameworks print as deprecated is ignored in these tests and nowhere else. They are imported here, before any
test: importing them warns, too.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
HAS_FRAMEWORKS = Path(sys.prefix).name == ".venv-frameworks"

if HAS_FRAMEWORKS:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sim_bridge.habitat import import_shim

        import_shim.make_baselines_importable()
        import habitat  # noqa: F401
        import habitat_baselines.agents.ppo_agents  # noqa: F401


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Every other environment has nothing to collect here: ``make test`` and ``make check`` run both."""
    return None if HAS_FRAMEWORKS else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning"))
