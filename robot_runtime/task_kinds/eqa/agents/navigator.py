"""The learned navigator that ships, a policy package."""

from pathlib import Path
from typing import Any

from robot_runtime.policies.package.policy import PackagePolicy, load_package_policy

FOLDER = Path(__file__).parent.parent / "shipped" / "eqa_navigator"


def eqa_navigator(**arguments: Any) -> PackagePolicy:
    """The planner-controller navigator with attention answerer, trained in generated flats (``docs/tasks/eqa.md``).

    Args:
        arguments: arguments of :func:`load_package_policy`.
    """
    return load_package_policy(FOLDER, **arguments)
