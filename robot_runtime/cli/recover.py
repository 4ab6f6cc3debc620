"""``robot-runtime logs recover``: repair of a log whose writer was killed."""

from pathlib import Path
from typing import Annotated

import typer


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["logs"].command("recover")(recover)


def recover(
    log: Annotated[Path, typer.Argument(help="A log whose writer was killed.")],
    out: Annotated[Path, typer.Option(help="File for the recovered log.")],
) -> None:
    """Recover all intact messages of a truncated log, into a file that any MCAP tool opens.

    Example:
        robot-runtime logs recover logs/run/0003_apartment_3.mcap --out recovered.mcap
    """
    from robot_runtime.common.console import say
    from robot_runtime.recording.recover import recover as repair

    say(f"{repair(log, out)} messages recovered into {out}")
