"""Policy packages that ship with the runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_runtime.policies.package.policy import PackagePolicy, load_package_policy

FOLDER = Path(__file__).parent


def pointnav_depth(**arguments: Any) -> PackagePolicy:
    """A PointNav policy, trained by imitation of the classical agent (``docs/how-to/train-policy.md``).

    Args:
        arguments: those of :func:`load_package_policy`.
    """
    return load_package_policy(FOLDER / "pointnav_depth", **arguments)


def eqa_navigator(**arguments: Any) -> PackagePolicy:
    """The planner-controller navigator with attention answerer, trained in generated flats (``docs/tasks/eqa.md``).

    Args:
        arguments: those of :func:`load_package_policy`.
    """
    return load_package_policy(FOLDER / "eqa_navigator", **arguments)
