"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Wall-clock deadlines would make property tests depend on the machine's load.
settings.register_profile("runtime", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI judges one commit, so the same commit must give the same verdict; everybody else's runs go on searching.
settings.register_profile("ci", settings.get_profile("runtime"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "runtime")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of third-party data beside the checkout; tests that need it skip where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"third-party data is not at {folder}")
    return folder
