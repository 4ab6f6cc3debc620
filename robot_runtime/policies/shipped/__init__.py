"""Policy packages that ship with the runtime."""

from pathlib import Path
from typing import Any

from robot_runtime.policies.package.policy import PackagePolicy, load_package_policy

FOLDER = Path(__file__).parent


def pointnav_depth(**arguments: Any) -> PackagePolicy:
    """A PointNav policy, trained by imitation of the classical agent (``docs/how-to/train-policy.md``).

    Args:
        arguments: arguments of :func:`load_package_policy`.
    """
    return load_package_policy(FOLDER / "pointnav_depth", **arguments)
