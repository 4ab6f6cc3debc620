"""Checks of a campaign's logs and annotations against its ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from robot_runtime.campaign.attempts import Attempt
from robot_runtime.campaign.facts import facts_of
from robot_runtime.campaign.ledger import Entry, sha256_of
from robot_runtime.campaign.opening import LOGS
from robot_runtime.campaign.outcomes import same
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.state import State
from robot_runtime.errors import RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.verdict_files import read_verdicts, verdicts_path
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.summary import Maps

Find = Callable[[Any, str, str], None]


class LogCheck:
    """Check of all logs, in the order of the ledger.

    Args:
        folder: folder of the campaign.
        plan: plan of the campaign.
        find: gets kind, place and detail of each finding.
    """

    def __init__(self, folder: Path, plan: Plan, find: Find) -> None:
        self._folder, self._plan, self._find = folder, plan, find
        self._maps = Maps()
        self._seen: dict[str, str] = {}
        self._tasks: set[str] = set()
        self._sources: dict[str, set[str]] = {}
        self._verdicts: dict[str, list[Entry]] = {}

    def check_run(self, entry: Entry, attempt: Attempt | None, where: str) -> None:
        """Check the log of an ``ended`` line."""
        name, stated = entry["attempt"], entry["log"]
        if attempt is None:
            self._find("left out", where, f"{name} ended and was never begun")
            return
        if stated is None:
            return
        path = self._folder / stated
        if Path(stated).parts[:2] != (LOGS, name) or ".." in Path(stated).parts:
            self._find("changed", where, f"the log of {name} is said to be {stated}")
            return
        if not path.is_file():
            self._find("left out", stated, "the log is missing")
            return
        found = sha256_of(path)
        if found != entry["sha256"]:
            self._find("changed", stated, "the log is not the one that was written")
        facts = facts_of(self._plan, path, self._maps)
        if facts.kind not in ("killed", "damaged"):  # logs that end within their first bytes are all the same
            if found in self._seen:
                self._find("re-run", stated, f"is the same log as {self._seen[found]}")
            self._seen[found] = stated
        if not same(facts.document(), entry["facts"]):
            self._find("changed", where, f"what it says of {name} is not what its log says")
        if facts.kind != "damaged":
            with LogReader(path) as log:
                self._check_header(log.header, attempt, stated)

    def check_verdict(self, entry: Entry) -> None:
        """Take note of a judge's line."""
        self._verdicts.setdefault(entry["attempt"], []).append(entry)

    def check_files(self, state: State) -> None:
        """Look for logs and annotations that the ledger does not name."""
        named = {one.ended["log"] for one in state.attempts.values() if one.ended is not None}
        unsettled = {one.name for one in state.unfinished}
        for path in sorted((self._folder / LOGS).rglob("*.mcap")):
            stated = path.relative_to(self._folder).as_posix()
            if stated not in named and path.parent.name not in unsettled:
                self._find("re-run", stated, "a log of which the ledger does not tell")
        for attempt in state.attempts.values():
            if attempt.ended is not None and attempt.ended["log"] is not None:
                self._check_annotations(attempt.name, self._folder / attempt.ended["log"])

    def _check_header(self, header: EpisodeHeader, attempt: Attempt, where: str) -> None:
        begun, planned = attempt.begun, self._plan.policies[attempt.policy]
        if header.agent != attempt.policy:
            self._find("identity", where, f"is of policy {header.agent!r}, not of {attempt.policy!r}")
        if header.seed != begun["seed"]:
            self._find("identity", where, "ran with another seed")
        if header.episode.key != begun["episode"]:
            self._find("changed", where, "is of another episode: start, goal or scene differ")
        source = header.policy
        if planned.commitment and (source is None or source.digest != planned.commitment):
            self._find("identity", where, "is not of the sealed policy")
        if not planned.commitment and source is not None:
            if source.spec != planned.spec:
                self._find("identity", where, f"was run by {source.spec}, the plan names {planned.spec}")
            self._sources.setdefault(attempt.policy, set()).add(str(source.digest))
            if len(self._sources[attempt.policy]) == 2:
                self._find("identity", where, f"the files of policy {attempt.policy} changed during the campaign")
        self._tasks.add(repr(header.task))
        if len(self._tasks) == 2:
            self._find("changed", where, "the task is not that of the runs before")

    def _check_annotations(self, name: str, log: Path) -> None:
        said, path = self._verdicts.get(name, []), verdicts_path(log)
        where = path.relative_to(self._folder).as_posix()
        if not path.is_file():
            if said:
                self._find("left out", where, "the judges' annotations are missing")
            return
        if not said:
            self._find("re-judged", where, "was written outside the campaign")
            return
        if sha256_of(path) != said[-1]["sha256"]:
            self._find("re-judged", where, "is not what the judges wrote")
            return
        try:
            with LogReader(log) as opened:
                statements = read_verdicts(log, opened.header).statements
        except RecordingError as error:
            self._find("re-judged", where, error.message.replace(str(self._folder), ""))
            return
        written = [(one.who, _judgment(one.judgment)) for one in statements]
        stated = [(one["by"], (one["success"] if not one["invalid"] else None, one["invalid"])) for one in said]
        if any(one not in written for one in stated) or len(written) < len(stated):
            self._find("re-judged", where, "does not say what the ledger says")


def _judgment(judgment: str | None) -> tuple[bool | None, bool]:
    return {"success": True, "fail": False}.get(judgment or ""), judgment == "invalid"
