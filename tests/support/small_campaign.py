"""A small campaign of the fake robot, and ledgers of campaigns that were never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from robot_runtime.campaign.facts import Facts
from robot_runtime.campaign.ledger import Ledger
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.state import State
from robot_runtime.common import config
from robot_runtime.datasets import native_yaml
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import load_task

TASK = "pointnav_quick"


def document(**changes: Any) -> dict[str, Any]:
    """A plan of two policies on the fake robot."""
    return {
        "name": "small",
        "task": TASK,
        "scenes": {"*": "arena"},
        "episodes": "starts.yaml",
        "policies": {"P1": {"spec": "goal-follower"}, "P2": {"spec": "random"}},
        "robots": [{"robot": "fake"}],
        "order": {"seed": 3, "block": 4},
        "test": {"largest": 30},
        **changes,
    }


def plan(**changes: Any) -> Plan:
    """The same, parsed."""
    return config.parse(document(**changes), Plan, "plan")


def write_plan(folder: Path, episodes: int, **changes: Any) -> Path:
    """Plan and episodes in a folder; the path of the plan."""
    starts = folder / "starts.yaml"
    scene, task = load_scene(find_scene("arena")), load_task(TASK)
    native_yaml.save(starts, generate_episodes(scene, task, episodes, 7))
    path = folder / "plan.yaml"
    made = document(episodes=str(starts), **{"task": str(write_light_task(folder)), **changes})
    path.write_text(yaml.safe_dump(made), encoding="utf-8")
    return path


def write_light_task(folder: Path) -> Path:
    """A task of few steps and small images."""
    light = config.unparse(load_task(TASK)) | {"name": "light", "max_steps": 15}
    light["camera"] |= {"width": 32, "height": 24}
    path = folder / "light.yaml"
    path.write_text(yaml.safe_dump(light), encoding="utf-8")
    return path


def facts(success: float = 1.0, **changes: Any) -> Facts:
    """Facts of a run without any intervention."""
    metrics = {"success": success, "spl": 0.8 * success, "shortest_path_m": 4.0, "path_length_m": 5.0}
    return Facts(**{"end": "stop", "detail": "", "kind": None, "metrics": metrics, "map": "m", **changes})


class WrittenCampaign:
    """A ledger with runs that nobody ran."""

    def __init__(self, folder: Path, made: Plan, episodes: int = 6, rules: int = 1) -> None:
        self.plan = made
        self.ledger = Ledger(folder)
        self.state = State(made, ())
        names = [[str(n), "arena", f"arena/{n:012x}"] for n in range(episodes)]
        self.append("plan", plan=made.document(), episodes=names, plan_sha256=made.digest, rules=rules)

    def append(self, kind: str, **content: Any) -> None:
        """Add a line."""
        self.state.add(self.ledger.append(kind, **content))

    def run_next(self, found: Facts, robot: int = 0, recovered: bool = False) -> str:
        """Run what comes next; the attempt's name."""
        following = self.state.next_run(robot)
        assert following is not None
        start, policy = following
        name = self.state.attempt_name(start, policy)
        self.append("begun", attempt=name, start=start.number, policy=policy, robot=robot, seed=start.seed)
        self.append("ended", attempt=name, log=None, sha256=None, facts=found.document(), recovered=recovered)
        return name
