"""Statements of people about runs of a campaign, entered in its ledger: verdicts, interventions and notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from robot_runtime.campaign.inbox import send
from robot_runtime.campaign.intake import take_alone
from robot_runtime.campaign.ledger import FILE, is_running, read_ledger
from robot_runtime.campaign.opening import LOGS
from robot_runtime.errors import ConfigError
from robot_runtime.recording.verdict_files import add_verdict, verdicts_path
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.verdicts import EpisodeVerdict


def run_of(log: Path) -> tuple[Path, str] | None:
    """Folder of the campaign and name of the attempt of which this is the log; None for a log of no campaign."""
    attempt = log.resolve().parent
    folder = attempt.parent.parent
    return (folder, attempt.name) if attempt.parent.name == LOGS and (folder / FILE).is_file() else None


def submit(folder: Path, document: Mapping[str, Any]) -> str:
    """Enter a message in a campaign's ledger, through the process that runs the campaign if there is one.

    Args:
        folder: folder of the campaign.
        document: document of a kind in :mod:`robot_runtime.campaign.inbox`.

    Returns:
        What became of it, in one line.

    Raises:
        ConfigError: there is no campaign, or the message is malformed.
        RecordingError: it cannot be written, or the ledger was altered.
    """
    read_ledger(folder)
    send(folder, document)
    if is_running(folder):
        return "handed to the process that runs the campaign"
    return "; ".join(take_alone(folder)) or "it waits until the run has ended"


def annotate(
    log: Path,
    who: str,
    visible: bool | None = None,
    objects: Mapping[str, ObjectPose] | None = None,
    note: str = "",
    judgment: EpisodeVerdict | None = None,
    intervention: Literal["help", "takeover"] | None = None,
) -> str:
    """Add what a person says of a run: to the ledger if it belongs to a campaign, else to the log's annotations.

    Args:
        log: log of the run.
        who: name of the person.
        visible: whether the goal object was in view where the robot stopped; None if nothing is said, as below.
        objects: poses of objects in map at the end; not in a campaign.
        note: free text.
        judgment: judgment of the episode.
        intervention: intervention by which a person took part in the run.

    Returns:
        What became of it, in one line.

    Raises:
        ConfigError: nothing is said, or what is said does not fit the task or the campaign.
        RecordingError: there is no log, or the statement cannot be written.
    """
    run = run_of(log)
    if run is None:
        found = add_verdict(log, who, visible, dict(objects or {}), note, judgment, bool(intervention) or None)
        count = len(found.statements)
        return f"{verdicts_path(log)}: {count} statement{'' if count == 1 else 's'}"
    folder, attempt = run
    if objects:
        raise ConfigError(
            f"{log}: belongs to a campaign, and campaigns do not record poses of objects", "judge the run"
        )
    said: dict[str, Any] = {"attempt": attempt, "by": who, "note": note}
    if intervention is not None:
        return submit(folder, {"kind": "event", "what": intervention, **said})
    if judgment is None and visible is None:
        return submit(folder, {"kind": "note", **said})
    success = None if judgment not in ("success", "fail") else judgment == "success"
    verdict = {"success": success, "visible": visible, "invalid": judgment == "invalid"}
    return submit(folder, {"kind": "verdict", **verdict, **said})
