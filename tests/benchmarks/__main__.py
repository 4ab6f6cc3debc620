"""Command line of the benchmarks: ``python -m tests.benchmarks NAME`` measures and prints a table."""

from __future__ import annotations

import inspect
import sys

import typer

from robot_runtime.common.console import error_console
from robot_runtime.common.signals import interrupted_by_signals
from robot_runtime.errors import RuntimeFault
from tests.benchmarks.locobot.cli import control
from tests.benchmarks.motion.cli import motion
from tests.benchmarks.ros2.cli import ros2
from tests.benchmarks.ros_locobot.cli import ros
from tests.benchmarks.runtime.camera import camera
from tests.benchmarks.runtime.campaign import campaign
from tests.benchmarks.runtime.console import console
from tests.benchmarks.runtime.localization import localization
from tests.benchmarks.runtime.metrics import score
from tests.benchmarks.runtime.parallel import workers
from tests.benchmarks.runtime.policy import policy
from tests.benchmarks.sim.eqa import eqa
from tests.benchmarks.sim.gap import gap
from tests.benchmarks.sim.replay import replay
from tests.benchmarks.sim.scenes import scenes
from tests.benchmarks.sim.simulation import sim

COMMANDS = (
    camera,
    campaign,
    console,
    control,
    eqa,
    gap,
    localization,
    motion,
    policy,
    replay,
    ros,
    ros2,
    scenes,
    score,
    sim,
    workers,
)
"""Functions whose names, parameters and docstrings are those of the commands."""


def build_app() -> typer.Typer:
    """Build the application with one command per benchmark."""
    app = typer.Typer(
        help="Measure; print a table, and write its rows as JSON with --json.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for command in COMMANDS:
        summary = " ".join((inspect.getdoc(command) or "").partition("\n\n")[0].split())
        app.command(short_help=summary)(command)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run one benchmark and exit with its code. Signals that end it end it as Ctrl-C does."""
    with interrupted_by_signals(until_exit=True):
        try:
            build_app()(arguments, prog_name="python -m tests.benchmarks")
        except RuntimeFault as error:
            for name, text in (("error", error.message), ("remedy", error.remedy)):
                error_console.print(f"{name}: {text}", soft_wrap=True, markup=False)
            sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
