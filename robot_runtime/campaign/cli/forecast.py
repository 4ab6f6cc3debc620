"""``robot-runtime campaign forecast``: episodes and robot-hours that a question will take, before the first episode."""

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["campaign"].command("forecast")(forecast)


@grouped_options
def forecast(
    *,
    a: Annotated[Path, typer.Argument(help="Pilot logs of a policy, on the robot or simulated.", metavar="A")],
    b: Annotated[Path, typer.Argument(help="Pilot logs of the other, on the same episodes.", metavar="B")],
    plan: Annotated[
        Path | None,
        typer.Option(help="Plan from which metric, alpha, sides, largest number and battery limits are taken."),
    ] = None,
    metric: Annotated[str, typer.Option(help="Metric with values between 0 and 1.")] = "spl",
    difference: Annotated[
        list[float] | None, typer.Option(help="True difference B - A to find; may be repeated. Default: a table.")
    ] = None,
    alpha: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Probability of a wrong decision.")] = 0.05,
    one_sided: Annotated[bool, typer.Option("--one-sided", help="Ask only whether B is better.")] = False,
    max_pairs: Annotated[int, typer.Option(min=1, max=5000, help="Pairs after which the campaign ends.")] = 200,
    times: Annotated[
        Path | None, typer.Option(help="Logs of the robot for times and charge, if the pilot is simulated.")
    ] = None,
    placing_s: Annotated[float, typer.Option(min=0, help="Seconds between two episodes for placing.")] = 60.0,
    judging_s: Annotated[float, typer.Option(min=0, help="Seconds of judging for which the robot waits.")] = 0.0,
    charging_min: Annotated[float, typer.Option(min=0, help="Minutes of a charge, by default from 15 to 80 %.")] = 60.0,
    json: options.Json = None,
    parallel: options.JournalOptions,
) -> None:
    """Say how many episodes and robot-hours it takes to find a difference, from the scatter of pilot runs.

    Examples:
        robot-runtime campaign forecast logs/a logs/b --difference 0.1
        robot-runtime campaign forecast logs/sim-a logs/sim-b --times logs/real --placing-s 90 --judging-s 20
    """
    from dataclasses import asdict

    from robot_runtime.campaign.plan import load_plan
    from robot_runtime.common.console import console
    from robot_runtime.recording.json_output import write_json
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.scoring.cli.score import score_with_progress
    from robot_runtime.scoring.pilot import paired_differences, table, work_times
    from robot_runtime.scoring.statistics.planner import DIFFERENCES, power_table
    from robot_runtime.scoring.statistics.sequential import Sides

    sides: Sides = "one" if one_sided else "two"
    usable = 0.65
    if plan is not None:
        read = load_plan(plan)
        metric, alpha, sides, max_pairs = read.test.metric, read.test.alpha, read.test.sided, read.test.largest
        usable = read.battery.resume - read.battery.least
    scores_a, scores_b = score_with_progress([[a], [b]], parallel)
    pilot = paired_differences(scores_a, scores_b, metric)
    logs = find_logs([times] if times is not None else [a, b])
    work = work_times(logs, placing_s, judging_s, usable, 60 * charging_min)
    found = power_table(pilot, work, difference or DIFFERENCES, alpha, sides, max_pairs)
    console.print(table(found, work, len(pilot), metric, max_pairs))
    if json is not None:
        settings = {"metric": metric, "alpha": alpha, "sides": sides, "max_pairs": max_pairs, "pilot": pilot}
        write_json(json, {**settings, "times": asdict(work), "forecasts": [asdict(one) for one in found]})
