"""``robot-runtime verdict``: annotations of a log by people, after the run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli import options


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("verdict")(verdict)


def verdict(
    logs: options.Logs,
    by: Annotated[str, typer.Option(help="Your name: scores say whose verdict they use.")],
    visible: Annotated[
        bool | None,
        typer.Option("--visible/--not-visible", help="Whether the goal object was in view where the robot stopped."),
    ] = None,
    objects: Annotated[
        Path | None, typer.Option(help="YAML of where objects lay at the end: ID: {position: [x, y, z]}, in map.")
    ] = None,
    note: Annotated[str, typer.Option(help="Anything else that is worth knowing.")] = "",
) -> None:
    """Add what you saw to logs: it goes into NAME.evidence.yaml beside each, and scores use it and say so.

    Examples:
        robot-runtime verdict logs/run/0003_lab_mug.mcap --by Ada --visible
        robot-runtime verdict logs/run/0004_lab_mug.mcap --by Ada --not-visible --note "behind the bottle"
        robot-runtime verdict logs/run/0005_lab_tidy.mcap --by Ada --objects measured.yaml
    """
    from robot_runtime.common.console import console
    from robot_runtime.recording.annotations import add_annotation, annotations_path, read_objects
    from robot_runtime.scoring.summary import find_logs

    poses = read_objects(objects) if objects is not None else {}
    for log in find_logs(logs):
        count = len(add_annotation(log, by, visible, poses, note).statements)
        line = f"{annotations_path(log)}: {count} statement{'' if count == 1 else 's'}"
        console.print(line, soft_wrap=True, markup=False)
