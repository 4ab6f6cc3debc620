"""Shell completion of the values of options: names of presets, scenes, agents and sensors."""

from collections.abc import Callable, Iterable


def _preset_completion(folder: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        from robot_runtime.common import config

        return _starting(incomplete, (name for name, _ in config.presets(folder)))

    return complete


robots = _preset_completion("robots")
cameras = _preset_completion("cameras")
localizers = _preset_completion("localizers")
tasks = _preset_completion("tasks")


def scenes(incomplete: str) -> list[str]:
    """Bundled scenes."""
    from robot_runtime.scenes.scene import SCENES

    return _starting(incomplete, SCENES)


def agents(incomplete: str) -> list[str]:
    """Agents that installed packages offer."""
    from robot_runtime.policies import AGENTS

    return _starting(incomplete, AGENTS.names())


def sensors(incomplete: str) -> list[str]:
    """Sensors that a task can have."""
    from robot_runtime.tasks.payloads import sensor_names

    return _starting(incomplete, sensor_names())


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
