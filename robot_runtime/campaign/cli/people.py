"""``robot-runtime campaign plan, status, judge, event, note, answer``: what people do in a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from robot_runtime.cli_options import options
from robot_runtime.common.console import console, say

if TYPE_CHECKING:
    from robot_runtime.campaign.status import Status

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="YAML file of the plan.")]
Campaign = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan's file, or the campaign's folder.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the campaign. Default: campaigns/NAME.")]
By = Annotated[str, typer.Option(help="Your name.")]
AttemptName = Annotated[str, typer.Argument(metavar="ATTEMPT", help="Name of the run, for example 0012-P1-1.")]
Note = Annotated[str, typer.Option(help="Anything else that is worth knowing.")]


def plan(
    plan: PlanFile,
    publish: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plan with hashes and values of all it names.")
    ] = None,
    json: options.Json = None,
) -> None:
    """Check a plan, and print its runs in order: nothing moves.

    What --publish writes is for others: they can verify the campaign with it, down to the files.

    Examples:
        robot-runtime campaign plan plan.yaml
        robot-runtime campaign plan plan.yaml --publish published.yaml
    """
    from robot_runtime.campaign.contents import contents_of, published
    from robot_runtime.campaign.counting import digest
    from robot_runtime.campaign.opening import episode_names
    from robot_runtime.campaign.plan import load_plan
    from robot_runtime.campaign.schedule import schedule
    from robot_runtime.common.creating import creating
    from robot_runtime.common.yaml_text import dump_yaml
    from robot_runtime.recording.json_output import write_json

    read = load_plan(plan)
    names = episode_names(read)
    starts = schedule(read, names)
    table = Table("start", "episode", "scene", "policies, in order", box=None, pad_edge=False)
    for start in starts:
        table.add_row(str(start.number), start.episode.id, start.episode.scene, " ".join(start.policies))
    console.print(table)
    runs = sum(len(start.policies) for start in starts)
    ends = "or earlier, when the question is answered" if read.compared else "no two policies are compared"
    say(f"{len(starts)} starts, {runs} runs at most, {ends}; plan {read.digest[:12]}")
    contents = contents_of(read, names)
    say(f"plan, SHA-256: {read.digest}")
    for name, value in contents.document().items():
        shown = value if isinstance(value, str) else digest(value)
        say(f"{name}, SHA-256: {shown}")
    write_json(json, {"plan": read.digest, **contents.document(), "starts": starts})
    if publish is not None:
        with creating(publish) as draft:
            draft.write_text(dump_yaml(published(read, contents)), encoding="utf-8")
        say(f"publish {publish}, and let others keep it")


def status(plan: Campaign, json: options.Json = None) -> None:
    """Print how far a campaign is, what it waits for, and the answer so far, by its logs; while it runs, by its ledger.

    Example:
        robot-runtime campaign status plan.yaml
    """
    from robot_runtime.campaign.opening import located
    from robot_runtime.campaign.status import verified_status
    from robot_runtime.recording.json_output import write_json

    found = verified_status(located(plan))
    for line in _lines(found):
        say(line)
    write_json(json, found.to_json())


def judge(
    plan: Campaign,
    attempt: AttemptName,
    by: By,
    success: Annotated[bool | None, typer.Option("--success/--fail", help="Whether the run succeeded.")] = None,
    visible: Annotated[
        bool | None, typer.Option("--visible/--not-visible", help="Whether the goal object was in view at the stop.")
    ] = None,
    invalid: Annotated[
        bool, typer.Option("--invalid", help="The run says nothing about the policy: it is repeated.")
    ] = False,
    note: Note = "",
) -> None:
    """Judge a run, of which only the sealed name is known.

    Example:
        robot-runtime campaign judge plan.yaml 0012-P1-1 --by Ada --success
    """
    document = {"success": success, "visible": visible, "invalid": invalid, "note": note}
    _submit(plan, {"kind": "verdict", "attempt": attempt, "by": by, **document})


def event(
    plan: Campaign,
    attempt: AttemptName,
    what: Annotated[str, typer.Argument(metavar="WHAT", help="help, e_stop, battery_change, other, ...")],
    by: By,
    note: Note = "",
) -> None:
    """Report an intervention that the robot did not notice itself; the plan says how it counts.

    Example:
        robot-runtime campaign event plan.yaml 0012-P1-1 help --by Ada --note "freed a wheel from the carpet"
    """
    _submit(plan, {"kind": "event", "attempt": attempt, "what": what, "by": by, "note": note})


def note(
    plan: Campaign,
    attempt: AttemptName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is worth knowing of the run.")],
    by: By,
) -> None:
    """Add a remark to a run: it is in the report, and does not count.

    Example:
        robot-runtime campaign note plan.yaml 0012-P1-1 "took the long way around the table" --by Ada
    """
    _submit(plan, {"kind": "note", "attempt": attempt, "by": by, "note": text})


def answer(
    plan: Campaign,
    ask: Annotated[int, typer.Argument(metavar="NUMBER", help="Of what was asked, as `campaign status` prints it.")],
    by: By,
) -> None:
    """Confirm a requested action; the campaign resumes.

    Example:
        robot-runtime campaign answer plan.yaml 31 --by Ada
    """
    _submit(plan, {"kind": "answer", "ask": ask, "by": by})


def _submit(plan: Path, message: dict[str, Any]) -> None:
    """Enter a message in a campaign's ledger, and print what became of it."""
    from robot_runtime.campaign.messages import submit
    from robot_runtime.campaign.opening import located

    say(submit(located(plan), message))


def _lines(found: Status) -> list[str]:
    state = "ended" if found.finished else "running" if found.running else "paused"
    eta = "" if found.eta_s is None or found.finished else f", at most {found.eta_s / 60:.0f} min more"
    lines = [
        f"{found.name}: {state}, {found.starts_done} of at most {found.starts_planned} starts{eta}",
        f"runs: {found.attempts}, {found.repeated} repeated by rule, {found.given_up} starts given up",
        f"answer: {found.answer}",
    ]
    lines += [f"asks ({ask.id}): {ask.text}" for ask in found.asks]
    return lines + [f"to judge: {name} {log}" for name, log in found.to_judge]


COMMANDS = (status, judge, event, note, answer)
"""Commands in the order of use; ``plan`` comes before ``run``."""
