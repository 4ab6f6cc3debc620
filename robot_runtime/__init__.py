"""Runtime that carries embodied-AI policies out of the simulator and onto a real robot.

The public names below are imported from their modules when they are first used: ``import robot_runtime`` alone needs
no other package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from robot_runtime.common.version import VERSION

if TYPE_CHECKING:
    from robot_runtime.actions.discrete import Action
    from robot_runtime.datasets.files import load_episodes
    from robot_runtime.datasets.formats import generate_episodes
    from robot_runtime.env import Env
    from robot_runtime.errors import RuntimeFault
    from robot_runtime.policies import load_policy
    from robot_runtime.policy import Observation, Policy
    from robot_runtime.recording.reader import read_log
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.records import Subscriber
    from robot_runtime.robots.loader import RobotContext, load_robot
    from robot_runtime.runtime import run_episode, run_episodes
    from robot_runtime.scenes.scene import load_scene
    from robot_runtime.scoring.summary import score_logs
    from robot_runtime.tasks.task import load_task

__version__ = VERSION

__all__ = [
    "Action",
    "Env",
    "Observation",
    "Policy",
    "Recorder",
    "RobotContext",
    "RuntimeFault",
    "Subscriber",
    "__version__",
    "generate_episodes",
    "load_episodes",
    "load_policy",
    "load_robot",
    "load_scene",
    "load_task",
    "read_log",
    "run_episode",
    "run_episodes",
    "score_logs",
]

_MODULES = {
    "Action": "actions.discrete",
    "Env": "env",
    "Observation": "policy",
    "Policy": "policy",
    "Recorder": "recording.writer",
    "RobotContext": "robots.loader",
    "RuntimeFault": "errors",
    "Subscriber": "records",
    "generate_episodes": "datasets.formats",
    "load_episodes": "datasets.files",
    "load_policy": "policies",
    "load_robot": "robots.loader",
    "load_scene": "scenes.scene",
    "load_task": "tasks.task",
    "read_log": "recording.reader",
    "run_episode": "runtime",
    "run_episodes": "runtime",
    "score_logs": "scoring.summary",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
