"""``robot-runtime info``: versions and names of presets, for users and for bug reports."""

from __future__ import annotations

import importlib.util
import platform
from importlib import metadata

import typer

_LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "opencv-python-headless",
    "mcap",
    "gymnasium",
    "mujoco",
    "onnxruntime",
    "torch",
    "coacd",
    "trimesh",
)


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("info")(info)


def info() -> None:
    """List versions, robots, tasks, scenes, agents, schemes of policies and formats of episodes.

    Example:
        robot-runtime info
    """
    from rich.table import Table

    from robot_runtime.common import config
    from robot_runtime.common.console import console
    from robot_runtime.common.provenance import git_commit
    from robot_runtime.common.version import VERSION
    from robot_runtime.datasets.formats import FORMATS
    from robot_runtime.policies import AGENTS
    from robot_runtime.policies.openers import OPENERS
    from robot_runtime.scenes.scene import SCENES

    table = Table(show_header=False, box=None)
    table.add_row("robot-runtime", f"{VERSION} {git_commit() or ''}")
    table.add_row("python", f"{platform.python_version()} on {platform.platform()}")
    table.add_row("libraries", ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES))
    for folder in ("robots", "cameras", "localizers", "tasks"):
        table.add_row(folder, ", ".join(name for name, _ in config.presets(folder)))
    table.add_row("scenes", ", ".join(sorted(SCENES)))
    table.add_row("agents", ", ".join(AGENTS.names()) + ", module:Class")
    table.add_row("policies", ", ".join(f"{scheme}:" for scheme in OPENERS.names()))
    table.add_row("episodes", ", ".join(FORMATS.names()))
    table.add_row("presets from", ", ".join(str(root) for root in config.preset_roots()))
    table.add_row("ROS 1", "rospy found" if importlib.util.find_spec("rospy") else "rospy not installed")
    console.print(table, soft_wrap=True)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
