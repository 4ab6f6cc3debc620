"""A Python 3.8, the one of Noetic's Ubuntu 20.04, where this machine has it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def python38() -> str:
    """The interpreter's path; skips the test where there is none."""
    versions = sorted((Path.home() / ".pyenv" / "versions").glob("3.8.*/bin/python3.8"))
    for candidate in (*map(str, versions), shutil.which("python3.8")):
        # pyenv's own `python3.8` exists without the version, and fails.
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    pytest.skip("there is no Python 3.8 here")
