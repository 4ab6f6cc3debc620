"""``robot-runtime doctor``: libraries, permissions and devices of this computer."""

from __future__ import annotations

from typing import Annotated

import typer


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("doctor")(doctor)


def doctor(
    subjects: Annotated[
        list[str] | None, typer.Argument(help="What to look at, e.g. azure-kinect; all by default.", show_default=False)
    ] = None,
) -> None:
    """Look for the libraries, permissions and devices that drivers need, and say how to get them.

    Exits with 7 if a subject that was named lacks something; without names, it only tells.

    Examples:
        robot-runtime doctor
        robot-runtime doctor azure-kinect
    """
    from rich.markup import escape

    from robot_runtime.common.console import console
    from robot_runtime.common.host_checks import Verdict, examine
    from robot_runtime.errors import DeviceFault

    marks = {Verdict.OK: "[green]ok[/]", Verdict.ABSENT: "[yellow]absent[/]", Verdict.MISSING: "[red]missing[/]"}
    findings = examine(subjects or ())
    for subject, found in findings.items():
        console.print(f"[bold]{subject}[/]", soft_wrap=True)
        for finding in found:
            # Details and remedies name extras, robot-runtime[sim], which are no markup.
            what, detail = escape(finding.what), escape(finding.detail)
            console.print(f"  {marks[finding.verdict]}  {what}: {detail}", soft_wrap=True)
            if finding.remedy:
                console.print(f"      remedy: {escape(finding.remedy)}", soft_wrap=True)
    missing = [finding.what for found in findings.values() for finding in found if finding.verdict is Verdict.MISSING]
    if subjects and missing:
        raise DeviceFault(f"doctor: missing: {', '.join(missing)}", "follow the remedies above")
