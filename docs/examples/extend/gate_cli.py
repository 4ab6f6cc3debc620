"""The command ``robot-runtime gates``."""

from pathlib import Path
from typing import Annotated

import typer


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("gates")(gates)


def gates(logs: Annotated[list[Path], typer.Argument(help="Logs of gatenav.", exists=True)]) -> None:
    """List the gates of logged episodes.

    Example:
      robot-runtime gates logs/gates/*.mcap
    """
    from robot_runtime import read_log  # here, so that other commands do not wait for it

    for path in logs:
        with read_log(path) as log:
            episode = log.header.episode
        typer.echo(f"{path}: episode {episode.id}, posts {episode.details.posts}")
