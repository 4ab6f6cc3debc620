"""``robot-runtime info``: versions and names of presets, for users and for bug reports."""

import importlib.util
import platform

import typer

from robot_runtime.cli_options import options

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


def info(json: options.Json = None) -> None:
    """List versions, robots, tasks, scenes, agents, schemes of policies and formats of episodes.

    Example:
        robot-runtime info
        robot-runtime info --json - | jq .libraries
    """
    from robot_runtime.common import config
    from robot_runtime.common.console import console
    from robot_runtime.common.provenance import git_commit, installed
    from robot_runtime.common.tables import facts_table
    from robot_runtime.common.version import VERSION
    from robot_runtime.datasets.formats import FORMATS
    from robot_runtime.policies import AGENTS
    from robot_runtime.policies.openers import OPENERS
    from robot_runtime.recording.json_output import write_json
    from robot_runtime.scenes.scene import SCENES

    facts: dict[str, object] = {
        "robot-runtime": f"{VERSION} {git_commit() or ''}",
        "python": f"{platform.python_version()} on {platform.platform()}",
        "libraries": {name: installed(name) or "not installed" for name in _LIBRARIES},
        **{
            folder: [name for name, _ in config.presets(folder)]
            for folder in ("robots", "cameras", "localizers", "tasks")
        },
        "scenes": sorted(SCENES),
        "agents": [*AGENTS.names(), "module:Class"],
        "policies": [f"{scheme}:" for scheme in OPENERS.names()],
        "episodes": list(FORMATS.names()),
        "presets from": list(map(str, config.preset_roots())),
        "ROS 1": "rospy found" if importlib.util.find_spec("rospy") else "rospy not installed",
    }
    console.print(facts_table(facts))
    write_json(json, facts)
