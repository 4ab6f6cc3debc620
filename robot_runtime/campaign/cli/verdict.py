"""``robot-runtime verdict``: verdicts of people on a run."""

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options import options


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["verdict"].command("add")(verdict)


def verdict(
    logs: options.Logs,
    by: Annotated[str, typer.Option(help="Your name: scores say whose verdict they use.")],
    success: Annotated[
        bool | None,
        typer.Option("--success/--fail", help="Whether the episode succeeded, in place of the metrics' rule."),
    ] = None,
    invalid: Annotated[
        bool, typer.Option("--invalid", help="The episode says nothing about the policy and is not scored.")
    ] = False,
    intervention: Annotated[
        bool, typer.Option("--intervention", help="A person helped the robot: the episode has failed.")
    ] = False,
    visible: Annotated[
        bool | None,
        typer.Option("--visible/--not-visible", help="Whether the goal object was in view where the robot stopped."),
    ] = None,
    objects: Annotated[
        Path | None, typer.Option(help="YAML of where objects lay at the end: ID: {position: [x, y, z]}, in map.")
    ] = None,
    note: Annotated[str, typer.Option(help="Anything else that is worth knowing.")] = "",
) -> None:
    """Add a verdict to logs: it is written to NAME.evidence.yaml next to each log. Scores use it and name its author.

    For a log of a campaign, it is entered in the campaign's ledger, too, as with `campaign judge` and `campaign event`.

    Examples:
        robot-runtime verdict logs/run/0002_lab_mug.mcap --by Ada --fail --note "stopped at the neighbors' mug"
        robot-runtime verdict logs/run/0003_lab_mug.mcap --by Ada --visible
        robot-runtime verdict logs/run/0004_lab_mug.mcap --by Ada --not-visible --note "behind the bottle"
        robot-runtime verdict logs/run/0005_lab_tidy.mcap --by Ada --objects measured.yaml
    """
    from robot_runtime.campaign.messages import give_verdict
    from robot_runtime.common.console import say
    from robot_runtime.errors import ConfigError
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.recording.verdict_files import read_objects
    from robot_runtime.verdicts import EpisodeVerdict

    if sum((success is not None, invalid, intervention)) > 1:
        raise ConfigError("--success or --fail, --invalid and --intervention exclude each other", "give one of them")
    judgment: EpisodeVerdict | None = "invalid" if invalid else None
    if success is not None:
        judgment = "success" if success else "fail"
    poses = read_objects(objects) if objects is not None else {}
    for log in find_logs(logs):
        done = give_verdict(log, by, visible, poses, note, judgment, "help" if intervention else None)
        say(done)
