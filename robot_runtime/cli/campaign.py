"""``robot-runtime campaign``: a test plan that runs itself, stops at its answer, and can be verified by others."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.campaign.cli import evidence, people
from robot_runtime.cli.operator import ConsoleOptions
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.errors import ConfigError, EpisodeError

if TYPE_CHECKING:
    from robot_runtime.campaign.plan import Plan
    from robot_runtime.campaign.robots import RobotProcess
    from robot_runtime.campaign.state import State

_ENDINGS = {
    "decided": "answered",
    "undecided": "ended",
    "all_run": "everything has been run",
    "to_judge": "runs wait for a judge: robot-runtime campaign status, then judge, then run again",
    "stopped": "stopped; run again to go on",
}


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    for command in (people.plan, run, *people.COMMANDS, *evidence.COMMANDS):
        groups["campaign"].command(command.__name__)(command)


@grouped_options
def run(
    plan: people.PlanFile,
    *,
    out: people.Out = None,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Private key to sign each line with; see `campaign key`.")
    ] = None,
    page: ConsoleOptions,
) -> None:
    """Run a plan, or resume it: the next morning, after Ctrl-C, after kill -9.

    It ends when the question is answered, or when everything has been run. What a person must do is asked for here, in
    the console, and as the plan's `help` says.

    With --console, every robot has a page, from which the others can be reached; each needs two ports.

    Examples:
        robot-runtime campaign run plan.yaml
        robot-runtime campaign run plan.yaml --console 0.0.0.0:8900 --attended
    """
    from robot_runtime.campaign.opening import check_plan, folder_of, open_campaign
    from robot_runtime.campaign.outcomes import sentence
    from robot_runtime.campaign.plan import load_plan
    from robot_runtime.campaign.runner import Runner
    from robot_runtime.campaign.sealing import signer
    from robot_runtime.campaign.status import read_status
    from robot_runtime.common.console import progress_bar, say, tell

    page.check()
    read = load_plan(plan)
    folder = folder_of(read, out)
    check_plan(read)
    sign_line = None if sign is None else signer(sign, read.signer)
    with open_campaign(read, folder, sign_line, tell) as ledger, progress_bar() as progress:
        bar = progress.add_task("starts", total=None, note="")

        def show(state: State) -> None:
            progress.update(bar, total=len(state.starts), completed=len(state.finished), note=_note(read, state))

        runner = Runner(read, ledger, tell, show, _robots(read, page), judged=page.console is not None)
        try:
            ending = runner.run()
        finally:
            tell(f"head of the ledger, for others to keep: {len(ledger.entries) - 1}:{ledger.head}")
    say(f"{folder}: {_ENDINGS[ending.reason]}")
    status = read_status(folder)
    for line in status.closing or ((sentence(read, ending.answer),) if read.show_scores else ()):
        say(line)
    if status.given_up:
        raise EpisodeError(
            f"{folder}: {status.given_up} of {status.starts_planned} starts were given up, because their runs failed",
            f"see why with `robot-runtime campaign verify {folder}`, and plan these starts in another campaign",
        )


def _robots(plan: Plan, page: ConsoleOptions) -> Callable[[Plan, int, Path], RobotProcess]:
    """Factory of the campaign's side of a robot's process, with a console or without."""
    from functools import partial

    from robot_runtime.campaign.robots import RobotProcess

    if page.console is None:
        return RobotProcess
    from robot_runtime.cli.campaign_robot import command

    if page.address[1] == 0 and len(plan.robots) > 1:
        raise ConfigError("--console 0 gives several robots no ports that are known", "name a port")
    # One token for as long as the command runs: a robot's process that is started again keeps its page.
    page = replace(page, console_token=page.console_token or secrets.token_urlsafe(16))
    names = [f"{number}: {planned.robot}" for number, planned in enumerate(plan.robots)]
    process, environment = command(page, names)
    return partial(RobotProcess, command=process, environment=environment)


def _note(plan: Plan, state: State) -> str:
    running = ", ".join(attempt.name for attempt in state.unfinished)
    asks = f" · asks for you: {len(state.asks)}" if state.asks else ""
    last = state.last_decision
    if last is None or not plan.show_scores:
        return running + asks
    p_value = last[plan.test.counts].get("p_value")
    return running + (f" · p {p_value:.2g}" if p_value is not None else "") + asks
