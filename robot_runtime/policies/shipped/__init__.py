"""Policy packages that ship with the runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_runtime.policies.package.policy import PackagePolicy, load_package_policy

FOLDER = Path(__file__).parent


def pointnav_depth(**arguments: Any) -> PackagePolicy:
    """A PointNav policy, imitated from the classical agent (``docs/how-to/train-policy.md``).

    Args:
        arguments: as for any package.
    """
    return load_package_policy(FOLDER / "pointnav_depth", **arguments)
