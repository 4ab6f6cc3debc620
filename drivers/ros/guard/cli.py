"""``robot-runtime guard``: the guard alone, between any commander and the base."""

from typing import Annotated

import typer


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("guard")(guard)


def _names() -> list[str]:
    from robot_runtime.common import config

    return [name for name, _ in config.presets("guards")]


def guard(
    file: Annotated[
        str, typer.Argument(metavar="GUARD", help="Preset of launch/guards or YAML file.", autocompletion=_names)
    ],
) -> None:
    """Stop a base's wheels when its commander fails, without a policy or a task, on ROS 1 or ROS 2.

    It runs until Ctrl-C, and forwards /robot_runtime_guard/command to the base as long as the commander is alive and
    alone, the base's sensors are fresh, nothing is touched, and no emergency stop is engaged.

    Examples:
        robot-runtime guard turtlebot3

        robot-runtime guard my_guard.yaml
    """
    from drivers.ros.guard import program
    from robot_runtime.common import config

    program.run(config.find_preset("guards", file))
