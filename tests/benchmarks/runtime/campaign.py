"""``bench campaign``: how soon campaigns end, how often they err, and what they withstand."""

from __future__ import annotations

from typing import Annotated

import typer

from tests.benchmarks.report import JsonFile, report

RUNS_PER_KILL = 3


def campaign(
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulated campaigns.")] = 0,
    runs: Annotated[
        bool, typer.Option(help="Run, kill, forge and verify simulated campaigns, too; takes some six minutes.")
    ] = True,
    kills: Annotated[
        int, typer.Option(min=1, help="Kills of the disturbed campaign's processes; it has three times as many runs.")
    ] = 20,
    honest: Annotated[int, typer.Option(min=1, help="Honest campaigns that are verified.")] = 30,
    ledgers: Annotated[int, typer.Option(min=1, help="Altered ledgers that are verified.")] = 500,
    json: JsonFile = None,
) -> None:
    """Measure the statistics of test campaigns on simulated ones."""
    from robot_runtime.common.console import console
    from tests.benchmarks.runtime.campaign_simulation import simulation_rows
    from tests.benchmarks.runtime.campaign_statistics import planner_rows, sequential_rows
    from tests.benchmarks.runtime.planted_failures import cause_rows

    rows = [*sequential_rows(seed), *simulation_rows(seed), *planner_rows(seed), *cause_rows(seed)]
    if runs:
        from tests.benchmarks.runtime.campaign_evidence import foreign_row, fraud_row
        from tests.benchmarks.runtime.campaign_honest import honest_row
        from tests.benchmarks.runtime.campaign_kills import kill_rows

        episodes = RUNS_PER_KILL * kills + kills % 2  # of two policies: an even number
        rows += [*kill_rows(episodes, kills, seed), fraud_row(), honest_row(honest, seed), foreign_row(ledgers, seed)]
    report("campaign", rows, json, console)
