"""``robot-runtime score``: metrics from logs alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.common.console import console, print_retry, progress_bar, say, tell
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from robot_runtime.metrics.settings import Rules
    from robot_runtime.scoring.summary import EpisodeScore


ClusterBy = Literal["none", "scene", "trajectory"]
"""Unit that the bootstrap of an interval draws, see :data:`robot_runtime.scoring.summary.Cluster`."""

Referee = Literal["logged", "smoothed"]
"""Poses that count, see :class:`robot_runtime.metrics.settings.Rules`."""

CountFaults = Annotated[
    bool,
    typer.Option(
        "--count-faults",
        help="Count an episode that the policy broke as failed, as challenges do: it raised, gave no answer in time, "
        "or drove to a cliff.",
    ),
]


def policy_faults(counted: bool) -> Literal["unscored", "failure"]:
    """The rule that ``--count-faults`` selects."""
    return "failure" if counted else "unscored"


By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FACET",
        help="Divide the tables by a property of episodes, and repeat for more: split, scene, room, difficulty (as the "
        "dataset says, else easy below a shortest path of 3 m, hard from 6 m), category, question_type, language, ...",
    ),
]


@dataclass(frozen=True)
class RuleOptions:
    """Choices that change scores."""

    referee: Annotated[
        Referee, typer.Option(help="By the referee's poses as logged, or smoothed after the run; needs [smoother].")
    ] = "logged"
    ignore_verdicts: Annotated[
        bool, typer.Option("--ignore-verdicts", "--ignore-evidence", help="Score without verdicts.")
    ] = False

    count_faults: CountFaults = False

    def rules(self) -> Rules:
        """The rules to score by."""
        from robot_runtime.metrics.settings import Rules

        return Rules(
            referee=self.referee,
            verdicts="ignore" if self.ignore_verdicts else "use",
            policy_faults=policy_faults(self.count_faults),
        )


@dataclass(frozen=True)
class SubmissionOptions:
    """A challenge's file."""

    submission: Annotated[
        str | None,
        typer.Option(
            metavar="CHALLENGE",
            help="Write what this challenge takes to --out: habitat (means), robothor (metrics.json.gz).",
        ),
    ] = None
    out: Annotated[Path | None, typer.Option(help="File for --submission.")] = None
    split: Annotated[str | None, typer.Option(help="For --submission, of logs that name no dataset.")] = None

    def check(self) -> None:
        """Raise ``ConfigError`` if one of challenge and file is missing, or the challenge is unknown."""
        from robot_runtime.scoring.report.panels import submission_formats

        if (self.submission is None) != (self.out is None):
            raise ConfigError("--submission and --out go together", "give both: which challenge, and the file to write")
        if self.submission is not None and self.submission not in submission_formats():
            names = ", ".join(submission_formats())
            raise ConfigError(f"there is no submission for the challenge {self.submission!r}", f"choose from {names}")

    def write(self, scores: Sequence[EpisodeScore]) -> None:
        """Write the file, if one is wanted, and print a summary. Raises ``RuntimeFault``."""
        from robot_runtime.scoring.report.panels import submission_formats

        if self.submission is None or self.out is None:
            return
        scored = sum(score.scorable for score in scores)
        with progress_bar() as progress:
            bar = progress.add_task("writing", total=scored, note="")
            summary = submission_formats()[self.submission].write(
                self.out, scores, self.split, lambda _: progress.advance(bar)
            )
        console.print(summary, end="", soft_wrap=True, markup=False)
        left_out = f"; {len(scores) - scored} logs without a score are not in it" if scored < len(scores) else ""
        line = f"{self.submission} submission of {scored} episodes: {self.out}{left_out}"
        say(line)
        robots = dict.fromkeys(str(score.setting) for score in scores if score.scorable)
        if len(robots) > 1:
            say(f"it mixes {len(robots)} robots: {'; '.join(robots)}")


@dataclass(frozen=True)
class SimulationOptions:
    """Simulated runs as evidence."""

    with_simulation: Annotated[
        list[Path] | None,
        typer.Option(help="Simulated logs of the same policies, on these starts and on many more: narrower intervals."),
    ] = None
    planned_episodes: Annotated[
        int | None,
        typer.Option(min=1, help="Largest number of real episodes of a policy, if this is not the last look."),
    ] = None
    simulation_json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what --with-simulation gives to this file.")
    ] = None

    def check(self) -> None:
        """Raise ``ConfigError`` if an option lacks the logs that it is about."""
        if not self.with_simulation and (self.planned_episodes is not None or self.simulation_json is not None):
            raise ConfigError(
                "--planned-episodes and --simulation-json need --with-simulation", "name the folder of simulated logs"
            )

    def show(self, scores: Sequence[EpisodeScore], simulated: Sequence[EpisodeScore]) -> None:
        """Print estimates with simulation, and write them. Raises ``RuntimeFault``."""
        from robot_runtime.scoring.simulated_twins import table, with_simulation, write_estimates

        estimates = with_simulation(scores, simulated, self.planned_episodes)
        console.print(table(estimates))
        if self.simulation_json is not None:
            write_estimates(self.simulation_json, estimates)


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("score")(score)


@grouped_options
def score(
    *,
    logs: Annotated[list[Path] | None, typer.Argument(help="Log files, or folders of them.")] = None,
    json: options.Json = None,
    parquet: Annotated[Path | None, typer.Option(help="Write a row per log to this file; needs [parquet].")] = None,
    parallel: options.JournalOptions,
    challenge: SubmissionOptions,
    cluster: Annotated[
        ClusterBy,
        typer.Option(help="Intervals over episodes; or over scenes, for a claim about other scenes; or trajectories."),
    ] = "none",
    by: By = None,
    timeout_s: Annotated[
        float | None, typer.Option(min=1, help="Seconds for one log, with several processes. Default: 300.")
    ] = None,
    rules: RuleOptions,
    simulation: SimulationOptions,
    cases: Annotated[
        Path | None, typer.Option(help="Check the metrics against a file of worked cases, instead of scoring logs.")
    ] = None,
) -> None:
    """Score logs: success, SPL, SoftSPL, distance to goal, collisions and steps, with intervals.

    Examples:
        robot-runtime score logs/
        robot-runtime score logs/ --json scores.json --parquet scores.parquet
        robot-runtime score logs/ --cluster scene
        robot-runtime score logs/ --by category --by difficulty
        robot-runtime score /mnt/logs --ledger scores.jsonl --ray 10.0.0.5:6379
        robot-runtime score logs/ --referee smoothed
        robot-runtime score logs/real --with-simulation logs/simulated
        robot-runtime score logs/ --submission robothor --out metrics.json.gz
        robot-runtime score --cases metrics_cases.json
    """
    if (cases is None) == (not logs):
        raise ConfigError("score needs either logs or --cases FILE", "name log files or folders, or a file of cases")
    if cases is not None:
        _check_cases(cases)
        return
    from robot_runtime.scoring.summary import check_facets

    challenge.check()
    simulation.check()
    groups = [logs or [], *([simulation.with_simulation] if simulation.with_simulation else [])]
    scores, *simulated = score_with_progress(groups, parallel, rules.rules(), timeout_s)
    check_facets(scores, by or ())
    _print_and_write(scores, cluster, json, parquet, by or ())
    if not any(episode.scorable for episode in scores):
        raise typer.Exit(1)
    for runs in simulated:
        simulation.show(scores, runs)
    challenge.write(scores)


def _print_and_write(
    scores: Sequence[EpisodeScore], cluster: ClusterBy, json: Path | None, parquet: Path | None, by: Sequence[str]
) -> None:
    from robot_runtime.scoring.report.terminal_table import table

    console.print(table(scores, cluster, by))
    if json is not None:
        from robot_runtime.scoring.report.export import write_json

        write_json(json, scores, cluster, by)
    if parquet is not None:
        from robot_runtime.scoring.report.export import write_parquet

        write_parquet(parquet, scores)


def print_scores(logs: Sequence[Path], json: Path | None = None) -> None:
    """Score logs, print the table, and write the JSON that ``score`` writes."""
    (scores,) = score_with_progress([logs], options.JournalOptions())
    _print_and_write(scores, "none", json, None, ())


def score_with_progress(
    groups: Sequence[Sequence[Path]],
    parallel: options.JournalOptions,
    rules: Rules | None = None,
    limit_s: float | None = None,
) -> list[list[EpisodeScore]]:
    """Return the scores of several groups of logs, under one progress bar."""
    from robot_runtime.metrics.settings import Rules
    from robot_runtime.parallel.map import LIMIT_S
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.scoring.summary import iter_scores, without_copies

    workers = parallel.counted(None)
    paths = [find_logs(logs) for logs in groups]
    everything = [path for group in paths for path in group]
    with ExitStack() as stack:
        journal = None
        if parallel.ledger is not None:
            from robot_runtime.scoring.score_journal import score_journal

            journal = stack.enter_context(score_journal(parallel.ledger, rules or Rules(), parallel.overwrite))
            tell(options.resumed(journal, everything))
        progress = stack.enter_context(progress_bar())
        bar = progress.add_task("scoring", total=len(everything), note="")
        scores = iter_scores(everything, rules, workers, limit_s or LIMIT_S, journal, print_retry)
        scored = [[_advanced(next(scores), progress, bar) for _ in group] for group in paths]
    return list(map(without_copies, scored))


def _advanced(score: EpisodeScore, progress: Progress, bar: TaskID) -> EpisodeScore:
    progress.advance(bar)
    return score


def _check_cases(path: Path) -> None:
    from robot_runtime.scoring.cases import run_cases, table

    report = run_cases(path)
    console.print(table(report))
    if not report.passed:
        raise typer.Exit(1)
