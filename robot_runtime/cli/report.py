"""``robot-runtime report``: one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("report")(report)


def report(
    logs: Annotated[list[Path], typer.Argument(help="Log files, or folders of them.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    picture: Annotated[Path | None, typer.Option(help="Also write the first episode as one PNG.")] = None,
) -> None:
    """Write one self-contained HTML page: table, maps with trajectories and contacts, first-person strips, plots.

    Examples:

        robot-runtime report logs/

        robot-runtime report logs/20261121T101500-classical-pointnav_gps_compass --out report.html
    """
    from robot_runtime.cli.console import console, progress_bar
    from robot_runtime.scoring.picture import write_picture
    from robot_runtime.scoring.report import write_report
    from robot_runtime.scoring.summary import find_logs

    paths = find_logs(logs)
    with progress_bar() as progress:
        bar = progress.add_task("drawing", total=len(paths), note="")
        write_report(paths, out, on_drawn=lambda _: progress.advance(bar))
    console.print(f"report: {out}", soft_wrap=True)
    if picture is not None:
        write_picture(paths[0], picture)
        console.print(f"picture: {picture}", soft_wrap=True)
