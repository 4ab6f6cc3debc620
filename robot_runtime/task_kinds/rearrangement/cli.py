"""``robot-runtime episodes convert``: iTHOR's rearrangement episodes from pickle to JSON."""

from pathlib import Path
from typing import Annotated

import typer


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["episodes"].command("convert")(convert)


def convert(
    source: Annotated[Path, typer.Argument(help="train, val or test.pkl.gz of ai2thor-rearrangement.")],
    out: Annotated[Path, typer.Option(help="File to write, ending in .json.gz.")],
    stage: Annotated[str | None, typer.Option(help="The split's name in the episodes' ids; else the file's.")] = None,
) -> None:
    """Convert iTHOR's rearrangement episodes from pickle to JSON, once, in a sandbox.

    Nothing else in the runtime reads pickles: they are programs. The sandbox knows no names, writes no files and has
    limits of memory and time; a pickle of more than plain data is refused.

    Example:
        robot-runtime episodes convert val.pkl.gz --out ithor_val.json.gz
    """
    from robot_runtime.common.console import say
    from robot_runtime.task_kinds.rearrangement.convert_ithor import convert as convert_file

    say(f"{convert_file(source, out, stage)} episodes: {out}")
