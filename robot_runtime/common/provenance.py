"""Provenance of a run: the part of a log that differs between two otherwise identical runs."""

import getpass
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from robot_runtime.common.clock import utc_now_iso
from robot_runtime.common.version import VERSION

_DISTRIBUTIONS = (
    "numpy",
    "scipy",
    "numba",
    "opencv-python-headless",
    "mcap",
    "mujoco",
    "onnxruntime",
    "torch",
    "gtsam",
)


def git_commit() -> str | None:
    """The checkout's commit, with ``-dirty`` if files differ; None where the code is not in a git checkout."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return None
    try:
        described = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip()


def provenance() -> dict[str, Any]:
    """Time, command, host, user, versions and commit, JSON-serializable."""
    return {
        "created": utc_now_iso(),
        "command": command_line(),
        "host": platform.node(),
        "user": _user(),
        "platform": platform.platform(),
        **software(),
        "commit": git_commit(),
    }


def command_line() -> str:
    """The command of this process, without values of options that may be secret."""
    words = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return re.sub(r"(?i)((?:token|key|secret|password|hook)[= ])\S+|(?<=//)[^/@\s]+(?=@)", r"\1…", words)


def software() -> dict[str, Any]:
    """The versions on which figures may depend."""
    return {
        "python": platform.python_version(),
        "robot_runtime": VERSION,
        "libraries": {name: installed(name) for name in _DISTRIBUTIONS},
    }


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in the container's passwd
        return None


def installed(distribution: str) -> str | None:
    """The version of a distribution; None if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
