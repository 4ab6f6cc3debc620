"""``robot-runtime fit``: simulated robot fitted to the logs of a robot."""

from pathlib import Path
from typing import Annotated

import typer

from calibration import options


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("fit")(fit)


def fit(
    logs: Annotated[list[Path], typer.Argument(help="Logs of a single robot, or folders of them.")],
    out: Annotated[Path, typer.Option(help="Folder for robot.yaml, actuation.yaml, fit.json, fit.html, pictures.")],
    robot: Annotated[str | None, typer.Option(help="Of logs of several robots or controllers: which.")] = None,
    frames: Annotated[int, typer.Option(min=1, help="Whose floor is looked for, of all logs together.")] = 200,
    replay: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True, help="Replays of these logs, for camera and bias of depth: JSON or folder; repeatable."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    valid_days: options.ValidDays = options.VALID_DAYS,
) -> None:
    """Fit a simulated robot to logs: errors of actions, contact, camera, depth, latency; and say how good it is.

    Needs logs whose referee is not odometry. What cannot be found is left as it is, with the reason. Exits with 10 if
    the logs contradict the model of actions: the files are written all the same.

    Examples:
        robot-runtime fit logs/real --out fitted
        robot-runtime fit logs/real --replay replays --out fitted
        robot-runtime run --robot fitted/robot.yaml
    """
    from calibration.fitting.fit import fit_robot, of_one_robot, read_all
    from calibration.fitting.output import write_fit, write_page
    from calibration.fitting.replay_results import read_replays
    from calibration.fitting.simulator_options import settings
    from calibration.fitting.table import show
    from robot_runtime.common.console import console, progress_bar, say
    from robot_runtime.errors import ModelMisfit
    from robot_runtime.recording.log_files import find_logs

    options.check_result(out / "robot.yaml", valid_days, overwrite)
    paths = find_logs(logs)
    with progress_bar() as progress:
        bar = progress.add_task("reading", total=len(paths), note="")
        episodes, unused = read_all(paths, lambda _: progress.advance(bar))
        name, chosen = of_one_robot(episodes, robot)
        replayed = read_replays(replay or [], chosen[0].header.robot)
        fitted = fit_robot(name, chosen, unused, lambda stage: progress.update(bar, note=stage), frames, replayed)
    listed = settings(fitted)
    write_fit(out, fitted, listed, valid_days)
    write_page(out, fitted, listed)
    show(fitted, listed, console)
    say(f"robot:  {out / 'robot.yaml'}")
    say(f"page:   {out / 'fit.html'}")
    if fitted.misfits:
        raise ModelMisfit(
            "does not fit: " + "; ".join(map(str, fitted.misfits)),
            "do not rely on this robot there; fit logs of the other rooms alone, or look for what differs "
            "(floor, slope, referee)",
        )
