"""``robot-runtime compare``: difference between two policies."""

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.scoring.cli.score import By, ClusterBy, CountFaults, policy_faults


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("compare")(compare)


@grouped_options
def compare(
    *,
    a: Annotated[Path, typer.Argument(help="Logs of a policy: a folder, or a log.", metavar="A")],
    b: Annotated[Path, typer.Argument(help="Logs of the other, on the same episodes.", metavar="B")],
    json: options.Json = None,
    cluster: Annotated[
        ClusterBy, typer.Option(help="What interval and test take as independent: episodes, scenes or trajectories.")
    ] = "none",
    by: By = None,
    count_faults: CountFaults = False,
    parallel: options.JournalOptions,
) -> None:
    """Test whether two policies differ on their common episodes; estimate how many more are needed.

    Examples:
        robot-runtime compare logs/classical logs/goal-follower
        robot-runtime compare logs/a logs/b --json difference.json
        robot-runtime compare logs/a logs/b --by category
    """
    from robot_runtime.common.console import console
    from robot_runtime.metrics.settings import Rules
    from robot_runtime.scoring.cli.score import score_with_progress
    from robot_runtime.scoring.report.comparison_table import table
    from robot_runtime.scoring.report.terminal_table import noted
    from robot_runtime.scoring.statistics import comparison as comparing

    rules = Rules(policy_faults=policy_faults(count_faults))
    scores_a, scores_b = score_with_progress([[a], [b]], parallel, rules)
    comparison = comparing.compare(scores_a, scores_b, cluster, by or ())
    console.print(table(comparison))
    for line in noted([*scores_a, *scores_b]):
        console.print(line)
    if json is not None:
        comparing.write_comparison(json, comparison)
