"""What the shell offers for the values of options: the names that there are, before it falls back to files."""

from __future__ import annotations

from collections.abc import Iterable


def robots(incomplete: str) -> list[str]:
    """Robot presets."""
    from robot_runtime.common import config

    return _starting(incomplete, (name for name, _ in config.presets("robots")))


def cameras(incomplete: str) -> list[str]:
    """Camera presets."""
    from robot_runtime.common import config

    return _starting(incomplete, (name for name, _ in config.presets("cameras")))


def localizers(incomplete: str) -> list[str]:
    """Localizer presets, for the policy and for the referee."""
    from robot_runtime.common import config

    return _starting(incomplete, (name for name, _ in config.presets("localizers")))


def tasks(incomplete: str) -> list[str]:
    """Task presets."""
    from robot_runtime.common import config

    return _starting(incomplete, (name for name, _ in config.presets("tasks")))


def scenes(incomplete: str) -> list[str]:
    """Bundled scenes."""
    from importlib import metadata

    from robot_runtime.scenes.scene import SCENE_ENTRY_POINTS

    return _starting(incomplete, (entry_point.name for entry_point in metadata.entry_points(group=SCENE_ENTRY_POINTS)))


def agents(incomplete: str) -> list[str]:
    """Agents that ship."""
    from robot_runtime.policies import AGENTS

    return _starting(incomplete, AGENTS)


def sensors(incomplete: str) -> list[str]:
    """Sensors that a task can have."""
    from robot_runtime.tasks.task import SENSOR_NAMES

    return _starting(incomplete, SENSOR_NAMES)


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
