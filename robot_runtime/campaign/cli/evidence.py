"""``robot-runtime campaign seal, serve, unblind, key, verify``: blind campaigns, and their proof."""

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.campaign.cli.people import Campaign, PlanFile
from robot_runtime.cli_options import options
from robot_runtime.cli_options.addresses import check_token, is_local
from robot_runtime.common.clock import SystemClock
from robot_runtime.common.console import console, say, tell
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.servers.cli import TOKEN_VARIABLE, Host

FIRST_PORT = 8800
KeyFile = Annotated[Path, typer.Option(metavar="FILE", help="Key file: who is who; for its holder's eyes only.")]


def seal(
    plan: PlanFile,
    key: KeyFile,
    out: Annotated[Path, typer.Option(help="File for the sealed plan.")],
    host: Annotated[str, typer.Option(help="Where robots reach the holder's `campaign serve`.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65000, help="Of the first policy; the others follow.")] = FIRST_PORT,
) -> None:
    """Seal a plan's policies: the plan then names P1, P2, ..., and only the key tells who they are.

    Keep the key where who runs the campaign cannot read it: as another user, or on another computer.

    Example:
        robot-runtime campaign seal open.yaml --key ../secret.yaml --out plan.yaml
    """
    from robot_runtime.campaign.plan import load_plan
    from robot_runtime.campaign.sealing import seal as seal_plan
    from robot_runtime.common.creating import creating
    from robot_runtime.common.yaml_text import dump_yaml

    sealed = seal_plan(load_plan(plan), key, host, port)
    with creating(out) as draft:
        draft.write_text(dump_yaml(sealed.document()), encoding="utf-8")
    say(f"sealed plan: {out}; keep {key} apart")


def serve(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="Key file of `campaign seal`.")],
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65000, help="Of the first policy; 0 for any free ones.")] = FIRST_PORT,
    token: Annotated[
        str | None, typer.Option(envvar=TOKEN_VARIABLE, help="What robots must show; needed beyond this machine.")
    ] = None,
) -> None:
    """Run the policies of a key under their sealed names, for the robots of the campaign.

    Example:
        robot-runtime campaign serve ../secret.yaml
    """
    from robot_runtime.campaign.sealing import read_key, served

    if token is None and not is_local(host):
        raise ConfigError(f"{host} is reached from other machines", f"set {TOKEN_VARIABLE} here and on the robot")
    if token is not None:
        check_token(token, host)

    with served(read_key(key), host, port, token, tell) as servers:
        console.print(f"serving {len(servers)} policies on ports {', '.join(str(one.port) for one in servers)}")
        while True:
            SystemClock().sleep(1.0)


def unblind(plan: Campaign, key: KeyFile) -> None:
    """Publish who is who, in the ledger, for good.

    Example:
        robot-runtime campaign unblind plan.yaml --key ../secret.yaml
    """
    from robot_runtime.campaign.opening import located
    from robot_runtime.campaign.sealing import read_key
    from robot_runtime.campaign.sealing import unblind as publish

    for name, one in publish(located(plan), read_key(key)).items():
        say(f"{name}: {one.name} ({one.policy.source})")


def key(path: Annotated[Path, typer.Argument(metavar="FILE", help="File for the new private key.")]) -> None:
    """Make a key to sign a ledger with, and print what the plan must name as `signer`. Needs [signature].

    Example:
        robot-runtime campaign key ../sign.key
    """
    from robot_runtime.campaign.sealing import create_key

    say(f"signer: {create_key(path)}")


def verify(
    campaign: Campaign,
    plan: Annotated[
        Path | None, typer.Option(help="The plan as `campaign plan --publish` wrote it before the campaign.")
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(metavar="LINE:HEAD", help="Head of the ledger that was kept elsewhere; repeatable."),
    ] = None,
    json: options.Json = None,
) -> None:
    """Verify a campaign from its folder, or a copy: what was changed, left out, run again or judged again.

    Exit code 8 if anything was found.

    Examples:
        robot-runtime campaign verify campaigns/careful-against-straight
        robot-runtime campaign verify copy --plan published.yaml --json result.json
    """
    from robot_runtime.campaign.contents import read_published
    from robot_runtime.campaign.ledger import read_heads
    from robot_runtime.campaign.opening import located
    from robot_runtime.campaign.outcomes import sentence
    from robot_runtime.campaign.verification import Verification
    from robot_runtime.recording.json_output import write_json

    published, contents = (None, None) if plan is None else read_published(plan)
    found = Verification(located(campaign), published, read_heads(head or ()), contents)
    for one in found.findings:
        say(f"{one.what}: {one.where}: {one.detail}")
    for text in found.notes:
        say(f"note: {text}")
    say(f"not checked: {'; '.join(found.unchecked)}")
    document = found.document()
    for name, result in document["with_given_up"].items():
        words = f"with runs of starts that were given up as {name}: {result['decision']}"
        say(words)
    write_json(json, document)
    ended = f"ended: {document['ended']}" if document["ended"] else "not ended yet"
    say(f"answer: {sentence(found.plan, found.ending[1])}")
    say(
        f"{document['campaign']}: {document['lines']} lines, {len(document['attempts'])} runs, {ended}; "
        f"{'nothing' if not found.findings else f'{len(found.findings)} contradictions'} found"
    )
    if found.findings:
        raise typer.Exit(RecordingError.exit_code)


def report(
    plan: Campaign,
    out: Annotated[Path | None, typer.Option(help="Folder. Default: report, in the campaign's folder.")] = None,
) -> None:
    """Write a page for reviewers, the verified result as JSON, a CSV of all runs, and each policy's scores.

    Scores are JSON and Parquet, and the submissions of RoboTHOR (metrics.json.gz) and Habitat where the task has them.

    Example:
        robot-runtime campaign report plan.yaml --out report
    """
    from robot_runtime.campaign.opening import located
    from robot_runtime.campaign.report import PAGE, write_report

    folder = located(plan)
    written = out or folder / "report"
    for line in write_report(folder, written):
        say(f"not written: {line}")
    say(f"report: {written / PAGE}")


def rehearse(
    plan: PlanFile,
    out: Annotated[Path, typer.Option(help="New folder for key, plan, campaign, copy and report.")],
    robot: Annotated[str, typer.Option(help="Robot preset in place of the plan's robots.")] = "sim",
    port: Annotated[int, typer.Option(min=1, max=65000, help="Of the first policy; the others follow.")] = FIRST_PORT,
) -> None:
    """Rehearse a plan in simulation: sealed, killed and resumed on the way, verified from a copy, with its report.

    The plan names its policies' sources; there are no judges.

    Example:
        robot-runtime campaign rehearse plan.yaml --out rehearsal
    """
    from robot_runtime.campaign.plan import load_plan
    from robot_runtime.campaign.rehearsal import rehearse as rehearse_plan
    from robot_runtime.campaign.report import PAGE, write_report

    campaign = rehearse_plan(load_plan(plan), out, robot, port, tell)
    write_report(campaign, out / "report")
    say(f"report: {out / 'report' / PAGE}")


COMMANDS = (seal, serve, unblind, key, verify, report, rehearse)
"""Commands in the order of use."""
