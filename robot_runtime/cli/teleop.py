"""``robot-runtime teleop``: episodes driven by a person."""

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from robot_runtime.cli.operator import OperatorOptions
from robot_runtime.cli.run import TaskOptions, run_policy
from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.errors import ConfigError

_HELP = """Drive episodes by hand, from keyboard, gamepad or the console's page; each becomes a log as those of `run`.

A simulated robot runs in real time. In a terminal, one press is one action; a page and a gamepad are held to drive, and
releasing, leaving and disconnecting stop.

Examples:
    robot-runtime teleop --by p07
    robot-runtime teleop --by p07 --view camera --console 0.0.0.0:8900 --robot my_robot.yaml --scene scenes/lab
    robot-runtime teleop --by p07 --gamepad auto --task objectnav_hm3d2023 --continuous
"""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("teleop", help=_HELP)(teleop)


@dataclass(frozen=True)
class DriverOptions:
    """The person who drives."""

    by: Annotated[str, typer.Option(help="Your pseudonym, for the log. Default: the name typed on the page.")] = ""
    view: Annotated[
        str, typer.Option(help="What you see: camera, camera+depth, all or in-sight. The page shows no more.")
    ] = "in-sight"
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Velocities instead of discrete actions, where the task has them.")
    ] = False

    @property
    def arguments(self) -> list[str]:
        """Arguments of the agent ``human``."""
        return [f"operator={self.by}", f"view={self.view}", f"continuous={str(self.continuous).lower()}"]


@grouped_options
def teleop(
    *,
    robot: options.RobotOptions,
    scene: options.Scene = "apartment",
    task: TaskOptions,
    driver: DriverOptions,
    episodes: options.EpisodeOptions,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes and simulated noise.")] = 0,
    output: options.ResumableLogOptions,
    localization_patience_s: options.LocalizationPatience = 30.0,
    operator: OperatorOptions,
) -> None:
    """Run the command; its help is ``_HELP``."""
    if operator.console is None and operator.gamepad is None and not os.isatty(0):
        raise ConfigError(
            "there is nothing to drive with", "run it in a terminal, or add --console 8900 or --gamepad auto"
        )
    agent = options.AgentOptions(agent_arg=driver.arguments)
    run_policy(
        lambda: agent.load("human"),
        robot,
        scene,
        task,
        episodes,
        output,
        operator,
        seed=seed,
        real_time=True,
        localization_patience_s=localization_patience_s,
    )
