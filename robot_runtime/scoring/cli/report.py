"""``robot-runtime report``: web pages about logs."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.scoring.cli.score import By, ClusterBy, CountFaults, Referee, policy_faults


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("report")(report)


@grouped_options
def report(
    *,
    logs: options.Logs,
    out: Annotated[
        Path | None,
        typer.Option(help="NAME.html for one page, else a folder. Default: report.html, or, of many logs, report/."),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Also write the first episode as one PNG.")] = None,
    cluster: Annotated[ClusterBy, typer.Option(help="As for score: what intervals are over.")] = "none",
    by: By = None,
    referee: Annotated[Referee, typer.Option(help="As for score: by whose poses.")] = "logged",
    count_faults: CountFaults = False,
    parallel: options.WorkerOptions,
) -> None:
    """Write self-contained HTML: scores with plots, and every episode with map, images and what its task is about.

    A folder of several runs becomes a page of all runs, with filters, and a report of each; --out NAME.html puts their
    episodes on one page instead.

    Examples:
        robot-runtime report logs/
        robot-runtime report logs/20261121T101500-classical-pointnav_gps_compass --out report.html
        robot-runtime report logs/all --out report --cluster scene
    """
    from robot_runtime.common.console import console, print_retry, progress_bar, say
    from robot_runtime.metrics.settings import Rules
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.scoring.report.pages import MOST_ON_ONE_PAGE, write_report
    from robot_runtime.scoring.report.png import write_picture
    from robot_runtime.scoring.report.runs_page import run_folders, write_runs
    from robot_runtime.scoring.report.terminal_table import not_scored, noted

    paths = find_logs(logs)
    many = len(logs) == 1 and len(run_folders(paths)) > 1 and (out is None or out.suffix != ".html")
    out = out or Path("report.html" if len(paths) <= MOST_ON_ONE_PAGE and not many else "report")
    with progress_bar() as progress:
        bar = progress.add_task("drawing", total=len(paths), note="")
        write = partial(
            write_report,
            on_drawn=lambda _: progress.advance(bar),
            rules=Rules(referee=referee, policy_faults=policy_faults(count_faults)),
            cluster=cluster,
            by=by or (),
            workers=parallel.counted(None),
            on_retry=print_retry,
        )
        scores = write_runs(logs[0], paths, out, write) if many else write(paths, out)
    for line in (*noted(scores), *not_scored(scores)):
        console.print(line)
    page = out if out.suffix == ".html" else out / "index.html"
    say(f"report: {page}")
    if picture is not None:
        write_picture(paths[0], picture)
        say(f"picture: {picture}")
    if not any(score.scorable for score in scores):
        raise typer.Exit(1)
